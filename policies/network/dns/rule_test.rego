package sandboxio.network.dns_test

import data.sandboxio.network.dns as rule

test_pass_https if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "deny", "egress": [{"ports": [443]}], "dns": []}}}
	found == set()
}

test_pass_without_network if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "deny", "egress": [], "dns": ["8.8.8.8"]}}}
	found == set()
}

test_fail_dns if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "deny", "egress": [{"ports": [53]}], "dns": []}}}
	found == {["network", "egress", 0, "ports"]}
}

test_fail_dns_over_tls if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "deny", "egress": [{"ports": [443]}, {"ports": [853]}], "dns": []}}}
	found == {["network", "egress", 1, "ports"]}
}

test_fail_own_server if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"default": "allow", "egress": [], "dns": ["8.8.8.8"]}}}
	found == {["network", "dns", 0]}
}

test_unknown_ports if {
	found := {f.path | some f in rule.deny} with input as {"resource": {"network": {"egress": [{}]}}}
	found == set()
}
