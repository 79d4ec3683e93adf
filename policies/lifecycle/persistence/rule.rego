# METADATA
# scope: package
# title: Nothing comes back by itself
# description: >-
#   A container that the engine starts again after every end, and after every reboot, keeps its secrets and
#   whatever got into it.
# custom:
#   id: SBX-LIF-004
#   severity: medium
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "Daytona documentation"
#       section: "auto-stop, 0 runs without end"
#     - document: "E2B documentation"
#       section: "autoPause"
#     - document: "Firecracker production host setup"
#       section: "Disabling swapping"
#   remediation: >-
#     Set restart to no, or to on-failure with a limit; of pods, restart_policy = "Never".
package sandboxio.lifecycle.persistence

deny contains {"path": ["restart"], "message": message} if {
	input.resource.restart in {"always", "unless-stopped"}
	message := sprintf("restart is %s, so that it never ends", [input.resource.restart])
}
