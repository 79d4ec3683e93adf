package sandboxio.resources.lifetime_test

import data.sandboxio.resources.lifetime as rule

test_pass_ten_minutes if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"lifetime_seconds": 600, "trust": "unstated"}}
	found == set()
}

test_pass_trusted_three_hours if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"lifetime_seconds": 10800, "trust": "trusted"}}
	found == set()
}

test_fail_missing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"lifetime_seconds": null, "trust": "unstated"}}
	found == {["lifetime_seconds"]}
}

test_fail_a_day if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"lifetime_seconds": 86400, "trust": "trusted"}}
	found == {["lifetime_seconds"]}
}

test_unknown_lifetime if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"trust": "unstated"}}
	found == set()
}

test_unknown_trust if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"lifetime_seconds": 10800}}
	found == set()
}

test_pass_pod if {
	found := {f.path | some f in (rule.deny | rule.warn)} with input as {"kind": "container", "resource": {"lifetime_seconds": 600, "trust": null}}
	found == set()
}

test_fail_pod_for_a_day if {
	found := {f.path | some f in rule.deny} with input as {"kind": "container", "resource": {"lifetime_seconds": 86400, "trust": null}}
	found == {["lifetime_seconds"]}
}

test_fail_container_without_an_end_warns if {
	denied := {f.path | some f in rule.deny} with input as {"kind": "container", "resource": {"lifetime_seconds": null, "trust": null}}
	denied == set()
	found := {f.path | some f in rule.warn} with input as {"kind": "container", "resource": {"lifetime_seconds": null, "trust": null}}
	found == {["lifetime_seconds"]}
}
