package sandboxio.isolation.writable_root_test

import data.sandboxio.isolation.writable_root as rule

test_pass_strict if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"profile": "strict"}}
	found == set()
}

test_fail_compat if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"profile": "compat"}}
	found == {["profile"]}
}

test_unknown_profile if {
	found := {f.path | some f in rule.warn} with input as {"resource": {}}
	found == set()
}

test_pass_container if {
	found := {f.path | some f in rule.warn} with input as {"kind": "container", "resource": {"profile": null, "process": {"read_only_root": true}}}
	found == set()
}

test_fail_container if {
	found := {f.path | some f in rule.warn} with input as {"kind": "container", "resource": {"profile": null, "process": {"read_only_root": null}}}
	found == {["process", "read_only_root"]}
}

test_unknown_container if {
	found := {f.path | some f in rule.warn} with input as {"kind": "container", "resource": {"profile": null, "process": {}}}
	found == set()
}
