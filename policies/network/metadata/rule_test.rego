package sandboxio.network.metadata_test

import data.sandboxio.network.metadata as rule

test_pass_public if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"classes": [], "field": "host", "target": "example.com"}]}}
	found == set()
}

test_fail_metadata if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"classes": ["link-local", "metadata"], "field": "cidr", "target": "169.254.169.254/32"}]}}
	found == {["network", "egress", 0, "cidr"]}
}

test_unknown_target if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
