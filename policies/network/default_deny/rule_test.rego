package sandboxio.network.default_deny_test

import data.sandboxio.network.default_deny as rule

test_pass_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "deny"}}}
	found == set()
}

test_fail_open if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "allow"}}}
	found == {["network", "default"]}
}

test_fail_nobody_says if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": null}}}
	found == {["network", "default"]}
}

test_unknown_network if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {}}}
	found == set()
}
