package sandboxio.isolation.host_state_test

import data.sandboxio.isolation.host_state as rule

test_pass_private if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"sysctls": ["net.ipv4.tcp_syncookies"]}, "mounts": [{"propagation": "private"}, {"propagation": null}]}}
	found == set()
}

test_fail_sysctl if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"sysctls": ["kernel.msgmax"]}, "mounts": []}}
	found == {["process", "sysctls", 0]}
}

test_fail_cgroups if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"sysctls": [], "writable_cgroups": true}, "mounts": []}}
	found == {["process", "writable_cgroups"]}
}

test_fail_shared if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {"sysctls": []}, "mounts": [{"propagation": "rshared"}]}}
	found == {["mounts", 0, "propagation"]}
}

test_unknown_settings if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"process": {}, "mounts": [{}]}}
	found == set()
}
