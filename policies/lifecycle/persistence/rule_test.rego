package sandboxio.lifecycle.persistence_test

import data.sandboxio.lifecycle.persistence as rule

test_pass_no if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"restart": "no"}}
	found == set()
}

test_pass_unsaid if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"restart": null}}
	found == set()
}

test_pass_on_failure if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"restart": "on-failure"}}
	found == set()
}

test_fail_always if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"restart": "always"}}
	found == {["restart"]}
}

test_fail_unless_stopped if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"restart": "unless-stopped"}}
	found == {["restart"]}
}

test_unknown_restart if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}
