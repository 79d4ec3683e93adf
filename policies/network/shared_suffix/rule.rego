# METADATA
# scope: package
# title: No wildcard over a domain whose names belong to strangers
# description: >-
#   Below *.amazonaws.com, *.github.io or *.workers.dev everybody can own a name, so that the rule lets data
#   out to everybody.
# custom:
#   id: SBX-NET-007
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "Docker Sandboxes documentation"
#       section: "Network policies, Security considerations"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI02"
#   remediation: >-
#     Name the host, as in my-bucket.s3.eu-west-1.amazonaws.com.
package sandboxio.network.shared_suffix

deny contains {"path": ["network", "egress", i, "host"], "message": message} if {
	some i
	input.facts.egress[i].wildcard == "shared-suffix"
	message := sprintf("strangers own names that %s matches", [input.facts.egress[i].target])
}
