package sandboxio.network.broad_wildcard_test

import data.sandboxio.network.broad_wildcard as rule

test_pass_own_domain if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": "domain", "target": "*.example.com"}]}}
	found == set()
}

test_pass_exact if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": null, "target": "example.com"}]}}
	found == set()
}

test_fail_tld if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": "tld", "target": "*.com"}]}}
	found == {["network", "egress", 0, "host"]}
}

test_fail_public_suffix if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"wildcard": "public-suffix", "target": "*.co.uk"}]}}
	found == {["network", "egress", 0, "host"]}
}

test_unknown_host if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}
