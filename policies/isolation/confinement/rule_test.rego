package sandboxio.isolation.confinement_test

import data.sandboxio.isolation.confinement as rule

test_pass_default if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"seccomp": "default", "apparmor": null, "selinux": null, "unmasked_proc": false}}}
	found == set()
}

test_pass_default_without_a_word if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"process": {"seccomp": "default"}}}
	found == set()
}

test_fail_seccomp if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"seccomp": "unconfined", "apparmor": null, "selinux": null, "unmasked_proc": null}}}
	found == {["process", "seccomp"]}
}

test_fail_modules if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"seccomp": "default", "apparmor": "unconfined", "selinux": "unconfined", "unmasked_proc": null}}}
	found == {["process", "apparmor"], ["process", "selinux"]}
}

test_fail_proc if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"seccomp": "default", "apparmor": null, "selinux": null, "unmasked_proc": true}}}
	found == {["process", "unmasked_proc"]}
}

test_fail_no_profile_warns if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"process": {"seccomp": null}}}
	found == {["process", "seccomp"]}
}

test_unknown_profile if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
