# METADATA
# scope: package
# title: The isolation tier fits the trust in the code
# description: >-
#   A container shares the host's kernel: it is no sandbox for code that nobody vouches for. Untrusted code
#   needs a kernel in user space, untrusted code of several tenants a virtual machine. Where nothing is said
#   of the code, a tier below that is warned of. What several tenants share is never waived.
# custom:
#   id: SBX-ISO-001
#   severity: critical
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     untrusted_floor:
#       description: lowest tier for untrusted code
#       default: "user-kernel"
#       tighten: rank
#     untrusted_multi_tenant_floor:
#       description: lowest tier for untrusted code of several tenants
#       default: "microvm"
#       tighten: rank
#   sources:
#     - document: "gVisor"
#       section: "README"
#     - document: "NIST SP 800-190"
#       section: "4.3.4"
#     - document: "NIST SP 800-190"
#       section: "3.5.2 Shared kernel"
#     - document: "Firecracker production host setup"
#       section: "one process per tenant"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI05"
#   remediation: >-
#     Raise isolation and use a backend that has the tier; or, if somebody vouches for the code, set trust to
#     trusted and say why.
package sandboxio.isolation.trust_floor

import data.sandboxio.lib.tier

deny contains {"path": ["isolation"], "message": message} if {
	input.resource.multi_tenant in {false, null}
	message := too_low
}

deny contains {"path": ["isolation"], "message": message, "waivable": false} if {
	input.resource.multi_tenant == true
	message := too_low
}

too_low := message if {
	tier.rank(input.resource.isolation) < tier.rank(floor)
	message := sprintf("untrusted code needs at least %s, this is %v", [floor, input.resource.isolation])
}

# At what is to be said, so that a waiver of it ends when something else is.
warn contains {"path": ["trust"], "message": message} if {
	input.resource.trust in {"unstated", null}
	tier.rank(input.resource.isolation) < tier.rank(data.params.untrusted_floor)
	message := sprintf("trust is unstated, and %v is too little for untrusted code", [input.resource.isolation])
}

floor := data.params.untrusted_floor if {
	input.resource.trust == "untrusted"
	input.resource.multi_tenant in {false, null}
}

floor := data.params.untrusted_multi_tenant_floor if {
	input.resource.trust == "untrusted"
	input.resource.multi_tenant == true
}
