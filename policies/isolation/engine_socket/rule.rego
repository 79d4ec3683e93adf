# METADATA
# scope: package
# title: The engine's socket stays outside
# description: >-
#   Whoever reaches the socket of a container engine starts a privileged container next: it is root on the host.
#   A directory that holds the socket counts as well.
# custom:
#   id: SBX-ISO-005
#   severity: critical
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: false
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.32"
#     - document: "Trivy checks"
#       section: "KSV-0006"
#     - document: "KICS docker-compose queries"
#       section: "Docker Socket Mounted"
#   remediation: >-
#     Take the mount out. A program that needs a container engine gets one inside a virtual machine.
package sandboxio.isolation.engine_socket

deny contains {"path": ["mounts", i, "source"], "message": message} if {
	some i
	input.facts.mounts[i].socket
	message := "this is, or holds, the socket of a container engine"
}
