package sandboxio.network.ingress_test

import data.sandboxio.network.ingress as rule

test_pass_listed if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"expose": [8080]}}, "facts": {"publish": []}}
	found == set()
}

test_pass_loopback if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"expose": []}}, "facts": {"publish": [{"public": false}]}}
	found == set()
}

test_fail_unlisted if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"expose": [8080, 22]}}, "facts": {"publish": []}}
	found == {["network", "expose", 1]}
}

test_fail_published if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"expose": []}}, "facts": {"publish": [{"public": true}]}}
	found == {["network", "publish", 0]}
}

test_unknown_ports if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {}}, "facts": {"publish": [{}]}}
	found == set()
}
