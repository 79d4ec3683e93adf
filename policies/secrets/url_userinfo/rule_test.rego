package sandboxio.secrets.url_userinfo_test

import data.sandboxio.secrets.url_userinfo as rule

test_pass_nothing_found if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"userinfo": []}}
	found == set()
}

test_fail_password if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"userinfo": ["env[\"DATABASE_URL\"]"]}}
	found == {"env[\"DATABASE_URL\"]"}
}

test_unknown_value if {
	found := {f.path | some f in rule.deny} with input as {"facts": {}}
	found == set()
}
