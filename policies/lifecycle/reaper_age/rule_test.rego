package sandboxio.lifecycle.reaper_age_test

import data.sandboxio.lifecycle.reaper_age as rule

test_pass_four_hours if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"schedule": {"max_age_seconds": 14400}}}
	found == set()
}

test_pass_by_deadline if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"schedule": {"max_age_seconds": null}}}
	found == set()
}

test_fail_a_month if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"schedule": {"max_age_seconds": 2592000}}}
	found == {["schedule", "max_age_seconds"]}
}

test_unknown_age if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"schedule": {}}}
	found == set()
}
