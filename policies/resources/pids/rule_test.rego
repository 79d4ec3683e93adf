package sandboxio.resources.pids_test

import data.sandboxio.resources.pids as rule

test_pass_modest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"pids": 256}}}
	found == set()
}

test_fail_missing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"pids": null}}}
	found == {["resources", "pids"]}
}

test_fail_negative if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"pids": -1}}}
	found == {["resources", "pids"]}
}

test_fail_too_much if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"pids": 100000}}}
	found == {["resources", "pids"]}
}

test_unknown_cap if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {}}}
	found == set()
}
