package sandboxio.isolation.host_namespaces_test

import data.sandboxio.isolation.host_namespaces as rule

test_pass_own if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"host_namespaces": []}}}
	found == set()
}

test_fail_network_and_pid if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"host_namespaces": ["network", "pid"]}}}
	found == {["process", "host_namespaces", 0], ["process", "host_namespaces", 1]}
}

test_fail_another_containers if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"host_namespaces": [], "joined_namespaces": ["pid"]}}}
	found == {["process", "joined_namespaces", 0]}
}

test_unknown_namespaces if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}}}
	found == set()
}
