package sandboxio.network.shared_suffix_test

import data.sandboxio.network.shared_suffix as rule

test_pass_own_domain if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": "domain", "target": "*.example.com"}]}}
	found == set()
}

test_fail_shared if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": "shared-suffix", "target": "*.github.io"}]}}
	found == {["network", "egress", 0, "host"]}
}

test_unknown_host if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
