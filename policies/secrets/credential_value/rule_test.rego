package sandboxio.secrets.credential_value_test

import data.sandboxio.secrets.credential_value as rule

test_pass_nothing_found if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"credentials": []}}
	found == set()
}

test_pass_guess_does_not_deny if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"credentials": [{"path": "env[\"A\"]", "detector": "high_entropy"}]}}
	found == set()
}

test_pass_shape_does_not_warn if {
	found := {f.path | some f in rule.warn} with input as {"facts": {"credentials": [{"path": "env[\"A\"]", "detector": "private_key"}]}}
	found == set()
}

test_fail_shape if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"credentials": [{"path": "env[\"A\"]", "detector": "private_key"}]}}
	found == {"env[\"A\"]"}
}

test_fail_guess_warns if {
	found := {f.path | some f in rule.warn} with input as {"facts": {"credentials": [{"path": "env[\"A\"]", "detector": "high_entropy"}]}}
	found == {"env[\"A\"]"}
}

test_unknown_value if {
	found := {f.path | some f in rule.deny} with input as {"facts": {}}
	found == set()
}
