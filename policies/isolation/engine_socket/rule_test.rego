package sandboxio.isolation.engine_socket_test

import data.sandboxio.isolation.engine_socket as rule

test_pass_other if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"mounts": [{"socket": false}]}}
	found == set()
}

test_fail_socket if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"mounts": [{"socket": false}, {"socket": true}]}}
	found == {["mounts", 1, "source"]}
}

test_unknown_source if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"mounts": [{}]}}
	found == set()
}
