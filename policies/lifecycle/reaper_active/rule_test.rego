package sandboxio.lifecycle.reaper_active_test

import data.sandboxio.lifecycle.reaper_active as rule

test_pass_every_five_minutes if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"schedule": {"dry_run": false, "interval_seconds": 300}}}
	found == set()
}

test_pass_cron if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"schedule": {"dry_run": false, "interval_seconds": null}}}
	found == set()
}

test_fail_dry_run if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"schedule": {"dry_run": true, "interval_seconds": 300}}}
	found == {["schedule", "dry_run"]}
}

test_fail_weekly if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"schedule": {"dry_run": false, "interval_seconds": 604800}}}
	found == {["schedule", "interval_seconds"]}
}

test_unknown_schedule if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"schedule": {}}}
	found == set()
}
