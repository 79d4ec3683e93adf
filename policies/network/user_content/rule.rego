# METADATA
# scope: package
# title: Hosts that take uploads have a reason
# description: >-
#   Code hosts, paste bins, messengers and file shares take what anybody sends and show it to others: a way out
#   for data, and a way in for instructions. Whoever opens one says why.
# custom:
#   id: SBX-NET-008
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "Docker Sandboxes documentation"
#       section: "Network policies, Security considerations"
#   remediation: >-
#     Write the reason into why, or use a mirror that only reads.
package sandboxio.network.user_content

deny contains {"path": ["network", "egress", i, "host"], "message": message} if {
	some i
	input.facts.egress[i].uploads
	input.facts.egress[i].explained == false
	message := sprintf("%s takes what anybody sends, and no why says what for", [input.facts.egress[i].target])
}
