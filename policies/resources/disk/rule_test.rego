package sandboxio.resources.disk_test

import data.sandboxio.resources.disk as rule

test_pass_modest if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"disk_mib": 1024}}}
	found == set()
}

test_fail_missing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"disk_mib": null}}}
	found == {["resources", "disk_mib"]}
}

test_fail_negative if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"disk_mib": -1}}}
	found == {["resources", "disk_mib"]}
}

test_fail_too_much if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {"disk_mib": 1000000}}}
	found == {["resources", "disk_mib"]}
}

test_unknown_cap if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"resources": {}}}
	found == set()
}

test_pass_container_with_a_read_only_root if {
	found := {f.path | some f in rule.deny} with input as {"kind": "container", "resource": {"resources": {"disk_mib": null}, "process": {"read_only_root": true}}}
	found == set()
}

test_fail_container_with_a_writable_root if {
	found := {f.path | some f in rule.deny} with input as {"kind": "container", "resource": {"resources": {"disk_mib": null}, "process": {"read_only_root": false}}}
	found == {["resources", "disk_mib"]}
}
