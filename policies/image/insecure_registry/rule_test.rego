package sandboxio.image.insecure_registry_test

import data.sandboxio.image.insecure_registry as rule

test_pass_verified if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"insecure": false}}}
	found == set()
}

test_pass_unsaid if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"insecure": null}}}
	found == set()
}

test_fail_insecure if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"insecure": true}}}
	found == {["image", "insecure"]}
}

test_unknown_image if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}
