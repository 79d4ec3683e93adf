package sandboxio.tenancy.sharing_test

import data.sandboxio.tenancy.sharing as rule

test_pass_nothing if {
	found := {f.path | some f in rule.deny} with input as {"graph": {"shared": []}}
	found == set()
}

test_fail_volume if {
	found := {f.path | some f in rule.deny} with input as {"graph": {"shared": [{"field": "volumes", "name": "v", "nodes": [0, 2], "tenants": 2}]}}
	found == {["nodes", 0, "volumes"], ["nodes", 2, "volumes"]}
}

test_unknown_plan if {
	found := {f.path | some f in rule.deny} with input as {"graph": {}}
	found == set()
}
