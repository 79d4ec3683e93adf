package sandboxio.network.dangerous_ports_test

import data.sandboxio.network.dangerous_ports as rule

test_pass_https if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"egress": [{"ports": [443]}]}}}
	found == set()
}

test_fail_ssh if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"egress": [{"ports": [22, 443]}]}}}
	found == {["network", "egress", 0, "ports"]}
}

test_unknown_ports if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"egress": [{}]}}}
	found == set()
}
