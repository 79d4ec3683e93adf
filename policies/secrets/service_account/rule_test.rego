package sandboxio.secrets.service_account_test

import data.sandboxio.secrets.service_account as rule

test_pass_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"service_account_token": false}}
	found == set()
}

test_pass_no_such_thing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"service_account_token": null}}
	found == set()
}

test_fail_mounted if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"service_account_token": true}}
	found == {["service_account_token"]}
}

test_unknown_token if {
	found := {f.path | some f in rule.deny} with input as {"resource": {}}
	found == set()
}
