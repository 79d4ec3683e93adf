package sandboxio.secrets.build_args_test

import data.sandboxio.secrets.build_args as rule

test_pass_version if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"build_args": [{"name": "VERSION"}]}, "facts": {"build_args": [{"credential_name": false, "detector": null}]}}
	found == set()
}

test_fail_name if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"build_args": [{"name": "NPM_TOKEN"}]}, "facts": {"build_args": [{"credential_name": true, "detector": "npm_token"}]}}
	found == {["build_args", "NPM_TOKEN"]}
}

test_fail_shape if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"build_args": [{"name": "CFG"}]}, "facts": {"build_args": [{"credential_name": false, "detector": "npm_token"}]}}
	found == {["build_args", "CFG"]}
}

test_fail_random_warns if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"build_args": [{"name": "CFG"}]}, "facts": {"build_args": [{"credential_name": false, "detector": "high_entropy"}]}}
	found == {["build_args", "CFG"]}
}

test_pass_random_is_not_denied if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"build_args": [{"name": "CFG"}]}, "facts": {"build_args": [{"credential_name": false, "detector": "high_entropy"}]}}
	found == set()
}

test_unknown_value if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"build_args": [{"name": "NPM_TOKEN"}]}, "facts": {"build_args": [{}]}}
	found == set()
}
