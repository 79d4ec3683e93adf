package sandboxio.lifecycle.reaper_test

import data.sandboxio.lifecycle.reaper as rule

test_pass_template if {
	found := {f.path | some f in rule.deny} with input as {"kind": "template", "resource": {"reaper": "nightly", "detached": null}}
	found == set()
}

test_pass_owned_sandbox if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"reaper": null, "detached": false}}
	found == set()
}

test_pass_sandbox_is_not_denied if {
	found := {f.path | some f in rule.deny} with input as {"kind": "sandbox", "resource": {"reaper": null, "detached": true}}
	found == set()
}

test_fail_template if {
	found := {f.path | some f in rule.deny} with input as {"kind": "template", "resource": {"reaper": null}}
	found == {["reaper"]}
}

test_fail_detached_sandbox_warns if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"reaper": null, "detached": true}}
	found == {["reaper"]}
}

test_unknown_reaper if {
	found := {f.path | some f in rule.deny} with input as {"kind": "template", "resource": {}}
	found == set()
}

test_pass_swept if {
	found := {f.path | some f in (rule.deny | rule.warn)} with input as {"kind": "graph", "graph": {"nodes": [{"coverage": "swept", "reaper": "nightly"}, {"coverage": null, "reaper": null}]}}
	found == set()
}

test_fail_no_such_schedule if {
	found := {f.path | some f in rule.deny} with input as {"kind": "graph", "graph": {"nodes": [{"coverage": "none", "reaper": "nope"}]}}
	found == {["nodes", 0, "reaper"]}
}

test_fail_dry_run_warns if {
	found := {f.path | some f in rule.warn} with input as {"kind": "graph", "graph": {"nodes": [{"coverage": "dry-run", "reaper": "nightly"}]}}
	found == {["nodes", 0, "reaper"]}
}

test_unknown_coverage if {
	found := {f.path | some f in rule.deny} with input as {"kind": "graph", "graph": {"nodes": [{"reaper": "nightly"}]}}
	found == set()
}
