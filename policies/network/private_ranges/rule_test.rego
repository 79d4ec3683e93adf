package sandboxio.network.private_ranges_test

import data.sandboxio.network.private_ranges as rule

test_pass_public if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 32, "classes": [], "field": "cidr", "target": "203.0.113.10/32"}]}}
	found == set()
}

test_pass_all_addresses_are_told_elsewhere if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 0, "classes": ["private"], "field": "cidr", "target": "0.0.0.0/0"}]}}
	found == set()
}

test_fail_private if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 8, "classes": ["private"], "field": "cidr", "target": "10.0.0.0/8"}]}}
	found == {["network", "egress", 0, "cidr"]}
}

test_fail_what_is_no_destination if {
	every class in ["unspecified", "multicast", "reserved"] {
		found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"bits": 32, "classes": [class], "field": "cidr", "target": "x"}]}}
		found == {["network", "egress", 0, "cidr"]}
	}
}

test_unknown_target if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
