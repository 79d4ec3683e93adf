package sandboxio.network.wide_prefix_test

import data.sandboxio.network.wide_prefix as rule

test_pass_narrow if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 24, "family": "ipv4", "target": "52.94.236.0/24"}]}}
	found == set()
}

test_fail_wide_ipv4 if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 8, "family": "ipv4", "target": "52.0.0.0/8"}]}}
	found == {["network", "egress", 0, "cidr"]}
}

test_fail_wide_ipv6 if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 32, "family": "ipv6", "target": "2600::/32"}]}}
	found == {["network", "egress", 0, "cidr"]}
}

test_unknown_cidr if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
