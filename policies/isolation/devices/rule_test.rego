package sandboxio.isolation.devices_test

import data.sandboxio.isolation.devices as rule

test_pass_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"devices": []}}}
	found == set()
}

test_fail_memory if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"devices": ["/dev/mem"]}}}
	found == {["process", "devices", 0]}
}

test_unknown_devices if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
