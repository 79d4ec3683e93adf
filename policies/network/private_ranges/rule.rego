# METADATA
# scope: package
# title: Private, shared and loopback addresses need an excuse
# description: >-
#   RFC 1918, carrier-grade NAT, unique local and loopback addresses lead sideways into the operator's own
#   network. What is no destination at all counts as well: to systems that connect to 0.0.0.0 it is the host
#   itself, and multicast and reserved ranges are whatever the operator's network makes of them.
# custom:
#   id: SBX-NET-005
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     allowed_private_cidrs:
#       description: private CIDRs that may be named, each as the rule has it in canonical form
#       default: []
#       tighten: fewer
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.3.3"
#     - document: "Docker Sandboxes documentation"
#       section: "Default security posture, Network defaults"
#   remediation: >-
#     Publish the service at a public address or through a proxy, or name the exact CIDR in the parameter
#     allowed_private_cidrs.
package sandboxio.network.private_ranges

deny contains {"path": ["network", "egress", i, field], "message": message} if {
	some i
	input.facts.egress[i].bits != 0 # SBX-NET-002 speaks of those
	classes := inward & {class | some class in input.facts.egress[i].classes}
	count(classes) > 0
	not input.facts.egress[i].target in data.params.allowed_private_cidrs
	field := input.facts.egress[i].field
	message := sprintf("%s reaches %s addresses", [input.facts.egress[i].target, concat(" and ", sort(classes))])
}

inward := {"private", "shared", "loopback", "unspecified", "multicast", "reserved"}
