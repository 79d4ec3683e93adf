# METADATA
# scope: package
# title: CIDRs are narrow
# description: >-
#   A /8 of a cloud is that cloud's customers.
# custom:
#   id: SBX-NET-009
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     min_prefix_ipv4:
#       description: shortest prefix of an IPv4 rule
#       default: 20
#       tighten: higher
#     min_prefix_ipv6:
#       description: shortest prefix of an IPv6 rule
#       default: 48
#       tighten: higher
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.4.2 Unbounded network access from containers"
#   remediation: >-
#     Use /20 or narrower for IPv4 and /48 or narrower for IPv6, or name hosts.
package sandboxio.network.wide_prefix

deny contains {"path": ["network", "egress", i, "cidr"], "message": message} if {
	some i
	bits := input.facts.egress[i].bits
	bits > 0 # SBX-NET-002 speaks of /0
	least := narrowest[input.facts.egress[i].family]
	bits < least
	message := sprintf("%s is wider than /%d", [input.facts.egress[i].target, least])
}

narrowest := {"ipv4": data.params.min_prefix_ipv4, "ipv6": data.params.min_prefix_ipv6}
