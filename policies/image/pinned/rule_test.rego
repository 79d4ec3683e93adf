package sandboxio.image.pinned_test

import data.sandboxio.image.pinned as rule

test_pass_digest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a@sha256:0", "pinned": true}}}
	found == set()
}

test_fail_tag if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a:1", "pinned": false}}}
	found == {["image"]}
}

test_fail_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": null, "pinned": null}}}
	found == {["image"]}
}

test_fail_no_reference if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": null, "pinned": false}}}
	found == {["image"]}
}

test_unknown_image if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}

test_pass_built if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a:1", "pinned": false, "made": true}}}
	found == set()
}
