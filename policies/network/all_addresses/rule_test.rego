package sandboxio.network.all_addresses_test

import data.sandboxio.network.all_addresses as rule

test_pass_narrow if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 24, "family": "ipv4", "target": "198.51.100.0/24"}], "share": {"ipv4": 0, "ipv6": 0}}}
	found == set()
}

test_fail_whole_family_once if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 0, "family": "ipv4", "target": "0.0.0.0/0"}], "share": {"ipv4": 1000, "ipv6": 0}}}
	found == {["network", "egress", 0, "cidr"]}
}

test_fail_halves if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 1, "family": "ipv4", "target": "0.0.0.0/1"}, {"bits": 1, "family": "ipv4", "target": "128.0.0.0/1"}], "share": {"ipv4": 1000, "ipv6": 0}}}
	found == {["network", "egress"]}
}

test_unknown_target if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}], "share": {"ipv4": 0, "ipv6": 0}}}
	found == set()
}
