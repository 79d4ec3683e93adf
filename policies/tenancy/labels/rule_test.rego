package sandboxio.tenancy.labels_test

import data.sandboxio.tenancy.labels as rule

test_pass_owner if {
	found := {f.path | some f in rule.warn} with input as {"kind": "template", "resource": {"labels": {"owner": "a"}, "owner": null, "tenant": null, "multi_tenant": false}}
	found == set()
}

test_pass_owned_by_a_runtime if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"labels": {}, "owner": "r1", "tenant": null, "multi_tenant": false}}
	found == set()
}

test_pass_tenant if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"labels": {}, "owner": "r1", "tenant": "t1", "multi_tenant": true}}
	found == set()
}

test_fail_nobody if {
	found := {f.path | some f in rule.warn} with input as {"kind": "template", "resource": {"labels": {}, "owner": null, "tenant": null, "multi_tenant": true}}
	found == {["labels", "owner"]}
}

test_fail_empty if {
	found := {f.path | some f in rule.warn} with input as {"kind": "container", "resource": {"labels": {"owner": ""}, "owner": null, "tenant": null, "multi_tenant": null}}
	found == {["labels", "owner"]}
}

test_fail_no_tenant if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"labels": {}, "owner": "r1", "tenant": null, "multi_tenant": true}}
	found == {["labels", "tenant"]}
}

test_unknown_tenancy if {
	found := {f.path | some f in rule.warn} with input as {"kind": "sandbox", "resource": {"labels": {"owner": "a"}}}
	found == set()
}
