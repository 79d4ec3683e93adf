package sandboxio.image.registry_test

import data.sandboxio.image.registry as rule

test_pass_listed if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"registry": "ghcr.io"}}}
	found == set()
}

test_pass_image_id if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"registry": null}}}
	found == set()
}

test_fail_other if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"registry": "evil.example"}}}
	found == {["image"]}
}

test_unknown_image if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}
