package sandboxio.secrets.credential_name_test

import data.sandboxio.secrets.credential_name as rule

test_pass_plain if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"env": [{"name": "LANG"}]}, "facts": {"env": [{"credential_name": false}]}}
	found == set()
}

test_fail_token if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"env": [{"name": "GITHUB_TOKEN"}]}, "facts": {"env": [{"credential_name": true}]}}
	found == {["env", "GITHUB_TOKEN"]}
}

test_unknown_value if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"env": [{"name": "GITHUB_TOKEN"}]}, "facts": {"env": [{}]}}
	found == set()
}
