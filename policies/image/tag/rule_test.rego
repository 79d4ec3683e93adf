package sandboxio.image.tag_test

import data.sandboxio.image.tag as rule

test_pass_version if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a:3.12.7", "tag": "3.12.7", "digest": null}}}
	found == set()
}

test_pass_digest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a@sha256:0", "tag": null, "digest": "sha256:0"}}}
	found == set()
}

test_pass_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": null, "tag": null, "digest": null}}}
	found == set()
}

test_pass_built if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a", "tag": null, "digest": null, "made": true}}}
	found == set()
}

test_fail_latest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a:latest", "tag": "latest", "digest": null}}}
	found == {["image"]}
}

test_fail_no_tag if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"image": {"ref": "a", "tag": null, "digest": null}}}
	found == {["image"]}
}

test_unknown_image if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}
