package sandboxio.isolation.known_tier_test

import data.sandboxio.isolation.known_tier as rule

test_pass_container if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "container", "process": {"runtime": null}}}
	found == set()
}

test_fail_unverified if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "unverified", "process": {"runtime": "fast"}}}
	found == {["process", "runtime"]}
}

test_unknown_runtime if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
