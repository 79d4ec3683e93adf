package sandboxio.provider.endpoint_test

import data.sandboxio.provider.endpoint as rule

test_pass_socket if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "unix", "local": true}}, "resource": {"provider": {"tls": null}}}
	found == set()
}

test_pass_ssh if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "ssh", "local": false}}, "resource": {"provider": {"tls": null}}}
	found == set()
}

test_pass_tls if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "tcp", "local": false}}, "resource": {"provider": {"tls": true}}}
	found == set()
}

test_pass_https if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "https", "local": false}}, "resource": {"provider": {"tls": null}}}
	found == set()
}

test_fail_plain if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "tcp", "local": false}}, "resource": {"provider": {"tls": null}}}
	found == {["provider", "endpoint"]}
}

test_fail_http if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "http", "local": false}}, "resource": {"provider": {"tls": null}}}
	found == {["provider", "endpoint"]}
}

test_fail_unverified if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {"scheme": "https", "local": false}}, "resource": {"provider": {"tls": false}}}
	found == {["provider", "endpoint"]}
}

test_unknown_endpoint if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"endpoint": {}}, "resource": {"provider": {"tls": null}}}
	found == set()
}
