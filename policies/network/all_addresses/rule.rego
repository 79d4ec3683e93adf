# METADATA
# scope: package
# title: No allowlist reaches all addresses
# description: >-
#   0.0.0.0/0 and ::/0 make a default of deny meaningless, and so do the halves 0.0.0.0/1 and 128.0.0.0/1 or
#   any list of CIDRs that together reach a large share of all addresses.
# custom:
#   id: SBX-NET-002
#   severity: critical
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_address_share_permille:
#       description: thousandths of an address family that an allowlist may not reach
#       default: 250
#       tighten: lower
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.4.2 Unbounded network access from containers"
#     - document: "NVIDIA/OpenShell"
#       section: "issue 592, 0.0.0.0 and 0.0.0.0/0 passed a check"
#   remediation: >-
#     List the networks that the program needs, or name hosts.
package sandboxio.network.all_addresses

deny contains {"path": ["network", "egress", i, "cidr"], "message": message} if {
	some i
	input.facts.egress[i].bits == 0
	message := sprintf("%s is every address there is", [input.facts.egress[i].target])
}

deny contains {"path": ["network", "egress"], "message": message} if {
	some family
	share := input.facts.share[family]
	share >= data.params.max_address_share_permille
	not family in whole
	message := sprintf("the CIDRs together reach %d of 1000 parts of %s", [share, family])
}

# Families that a single rule opens as a whole; that rule is named instead.
whole contains input.facts.egress[i].family if {
	some i
	input.facts.egress[i].bits == 0
}
