package sandboxio.resources.cpu_test

import data.sandboxio.resources.cpu as rule

test_pass_modest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"cpu_millis": 2000}}}
	found == set()
}

test_fail_missing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"cpu_millis": null}}}
	found == {["resources", "cpu_millis"]}
}

test_fail_negative if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"cpu_millis": -1}}}
	found == {["resources", "cpu_millis"]}
}

test_fail_too_much if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"cpu_millis": 64000}}}
	found == {["resources", "cpu_millis"]}
}

test_unknown_cap if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {}}}
	found == set()
}
