# METADATA
# scope: package
# title: The host is out of reach by name
# description: >-
#   Container engines and virtual machines give the host a name inside. Daemons there often trust whoever
#   reaches them.
# custom:
#   id: SBX-NET-006
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.30"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "2.2"
#   remediation: >-
#     Take the rule out; reach the service at its own public name.
package sandboxio.network.host_gateway

deny contains {"path": ["network", "egress", i, "host"], "message": message} if {
	some i
	"host-gateway" in input.facts.egress[i].classes
	message := sprintf("%s leads to the host itself", [input.facts.egress[i].target])
}
