# METADATA
# scope: package
# title: Names are resolved by the filtering resolver
# description: >-
#   A name server of the program's own choice is a tunnel: what is asked for carries data out, the answers carry
#   it in. An allowlist of hosts comes with a resolver that answers for these hosts only.
# custom:
#   id: SBX-NET-011
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, network_policy, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NVIDIA/OpenShell policy schema"
#       section: "host"
#     - document: "Docker Sandboxes documentation"
#       section: "Default security posture, Network defaults"
#   remediation: >-
#     Take the ports 53 and 853 out, and name the hosts that the program needs; leave the name servers of a
#     container with a network to its engine.
package sandboxio.network.dns

deny contains {"path": ["network", "egress", i, "ports"], "message": message} if {
	some i, j
	port := input.resource.network.egress[i].ports[j]
	port in {53, 853}
	message := sprintf("port %d leads to a name server past the resolver", [port])
}

deny contains {"path": ["network", "dns", i], "message": message} if {
	input.resource.network.default != "deny"
	some i
	input.resource.network.dns[i]
	message := "this name server is asked past the engine's own"
}
