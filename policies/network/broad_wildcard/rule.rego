# METADATA
# scope: package
# title: No wildcard over a top-level domain or public suffix
# description: >-
#   *.com and *.co.uk match hosts that anybody can register in a minute.
# custom:
#   id: SBX-NET-003
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NVIDIA/OpenShell security policy"
#       section: "Host Wildcards"
#   remediation: >-
#     Name the hosts, or use a wildcard below a domain of your own.
package sandboxio.network.broad_wildcard

deny contains {"path": ["network", "egress", i, "host"], "message": message} if {
	some i
	input.facts.egress[i].wildcard in {"tld", "public-suffix"}
	message := sprintf("anybody can register a host that %s matches", [input.facts.egress[i].target])
}
