package sandboxio.network.user_content_test

import data.sandboxio.network.user_content as rule

test_pass_explained if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"uploads": true, "explained": true, "target": "github.com"}]}}
	found == set()
}

test_pass_other_host if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"uploads": false, "explained": false, "target": "example.com"}]}}
	found == set()
}

test_fail_unexplained if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"uploads": true, "explained": false, "target": "github.com"}]}}
	found == {["network", "egress", 0, "host"]}
}

test_unknown_host if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{}]}}
	found == set()
}

test_unknown_why if {
	found := {f.path | some f in rule.deny} with input as {"facts": {"egress": [{"uploads": true, "target": "github.com"}]}}
	found == set()
}
