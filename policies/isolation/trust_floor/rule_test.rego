package sandboxio.isolation.trust_floor_test

import data.sandboxio.isolation.trust_floor as rule

test_pass_trusted_container if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "container", "trust": "trusted", "multi_tenant": true}}
	found == set()
}

test_pass_untrusted_user_kernel if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "user-kernel", "trust": "untrusted", "multi_tenant": false}}
	found == set()
}

test_pass_unstated_is_not_denied if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "container", "trust": "unstated", "multi_tenant": false}}
	found == set()
}

test_pass_unstated_user_kernel if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"isolation": "user-kernel", "trust": "unstated", "multi_tenant": false}}
	found == set()
}

test_fail_untrusted_container if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "container", "trust": "untrusted", "multi_tenant": false}}
	found == {["isolation"]}
}

test_fail_untrusted_tenants_user_kernel if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "user-kernel", "trust": "untrusted", "multi_tenant": true}}
	found == {["isolation"]}
}

test_fail_untrusted_nothing if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": null, "trust": "untrusted", "multi_tenant": null}}
	found == {["isolation"]}
}

test_fail_untrusted_no_tier if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "isolation(25)", "trust": "untrusted", "multi_tenant": false}}
	found == {["isolation"]}
}

test_fail_unstated_container_warns if {
	found := {f.path | some f in rule.warn} with input as {"resource": {"isolation": "container", "trust": "unstated", "multi_tenant": false}}
	found == {["trust"]}
}

test_unknown_isolation if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"trust": "untrusted", "multi_tenant": false}}
	found == set()
}

test_unknown_trust if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"isolation": "container", "multi_tenant": false}}
	found == set()
}
