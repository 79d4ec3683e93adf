package sandboxio.network.host_gateway_test

import data.sandboxio.network.host_gateway as rule

test_pass_public if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"classes": [], "target": "example.com"}]}}
	found == set()
}

test_fail_gateway if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"classes": ["host-gateway"], "target": "host.docker.internal"}]}}
	found == {["network", "egress", 0, "host"]}
}

test_unknown_host if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
