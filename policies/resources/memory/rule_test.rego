package sandboxio.resources.memory_test

import data.sandboxio.resources.memory as rule

test_pass_modest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"memory_mib": 512}}}
	found == set()
}

test_fail_missing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"memory_mib": null}}}
	found == {["resources", "memory_mib"]}
}

test_fail_negative if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"memory_mib": -1}}}
	found == {["resources", "memory_mib"]}
}

test_fail_too_much if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"memory_mib": 65536}}}
	found == {["resources", "memory_mib"]}
}

test_unknown_cap if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {}}}
	found == set()
}
