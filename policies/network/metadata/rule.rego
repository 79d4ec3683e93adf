# METADATA
# scope: package
# title: Metadata services and link-local addresses are out of reach
# description: >-
#   Clouds hand out the host's credentials at 169.254.169.254 and a few other addresses and names. A wider
#   range counts as well, and so do wildcards over the names.
# custom:
#   id: SBX-NET-004
#   severity: critical
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: false
#   sources:
#     - document: "Firecracker production host setup"
#       section: "Filtering Guest Egress Network Traffic"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI03"
#   remediation: >-
#     Remove the rule, or narrow it so that it leaves these addresses out. Give the sandbox a scoped secret
#     instead of the host's identity.
package sandboxio.network.metadata

deny contains {"path": ["network", "egress", i, field], "message": message} if {
	some i
	classes := {"metadata", "link-local"} & {class | some class in input.facts.egress[i].classes}
	count(classes) > 0
	field := input.facts.egress[i].field
	message := sprintf("%s reaches %s addresses", [input.facts.egress[i].target, concat(" and ", sort(classes))])
}
