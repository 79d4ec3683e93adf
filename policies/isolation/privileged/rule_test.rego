package sandboxio.isolation.privileged_test

import data.sandboxio.isolation.privileged as rule

test_pass_not if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"privileged": false}}}
	found == set()
}

test_pass_unsaid if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"privileged": null}}}
	found == set()
}

test_fail_privileged if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"privileged": true}}}
	found == {["process", "privileged"]}
}

test_unknown_privileged if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
