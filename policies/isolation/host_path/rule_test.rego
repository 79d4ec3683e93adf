package sandboxio.isolation.host_path_test

import data.sandboxio.isolation.host_path as rule

test_pass_volume if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"mounts": [{"source": "cache"}]}, "facts": {"mounts": [{"host": false, "socket": false, "system": false}]}}
	found == set()
}

test_pass_socket_is_not_ours if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"mounts": [{"source": "/run/docker.sock"}]}, "facts": {"mounts": [{"host": true, "socket": true, "system": false}]}}
	found == set()
}

test_fail_path if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"mounts": [{"source": "/srv/data"}]}, "facts": {"mounts": [{"host": true, "socket": false, "system": false}]}}
	found == {["mounts", 0, "source"]}
}

test_fail_root if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"mounts": [{"source": "/"}]}, "facts": {"mounts": [{"host": true, "socket": true, "system": true}]}}
	found == {["mounts", 0, "source"]}
}

test_unknown_source if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"mounts": [{}]}, "facts": {"mounts": [{}]}}
	found == set()
}
