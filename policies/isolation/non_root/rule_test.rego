package sandboxio.isolation.non_root_test

import data.sandboxio.isolation.non_root as rule

test_pass_user if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"user": "1000:1000", "non_root": null, "no_new_privileges": true}}}
	found == set()
}

test_pass_refused_by_the_engine if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"process": {"user": null, "non_root": true, "no_new_privileges": true}}}
	found == set()
}

test_fail_root if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"user": "root", "non_root": null, "no_new_privileges": true}}}
	found == {["process", "user"]}
}

test_fail_zero_and_group if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"user": "0:1000", "non_root": null, "no_new_privileges": true}}}
	found == {["process", "user"]}
}

test_fail_privileges if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"user": "1000", "non_root": null, "no_new_privileges": null}}}
	found == {["process", "no_new_privileges"]}
}

test_fail_image_warns if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"process": {"user": null, "non_root": null, "no_new_privileges": true}}}
	found == {["process", "user"]}
}

test_unknown_user if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
