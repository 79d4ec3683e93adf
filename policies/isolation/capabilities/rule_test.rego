package sandboxio.isolation.capabilities_test

import data.sandboxio.isolation.capabilities as rule

test_pass_none if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"cap_add": [], "cap_drop": ["ALL"]}}}
	found == set()
}

test_pass_low_ports if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"cap_add": ["NET_BIND_SERVICE"], "cap_drop": ["ALL"]}}}
	found == set()
}

test_fail_added if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"cap_add": ["SYS_ADMIN"], "cap_drop": ["ALL"]}}}
	found == {["process", "cap_add", 0]}
}

test_fail_kept if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"cap_add": [], "cap_drop": ["NET_RAW"]}}}
	found == {["process", "cap_drop"]}
}

test_unknown_capabilities if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
