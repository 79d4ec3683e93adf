# METADATA
# scope: package
# title: All capabilities are dropped, and none that matter added
# description: >-
#   On a shared kernel SYS_ADMIN, NET_ADMIN or SYS_PTRACE are ways out. What an engine leaves by default is more
#   than a program needs.
# custom:
#   id: SBX-ISO-007
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   params:
#     allowed_capabilities:
#       description: capabilities that may be added
#       default: ["NET_BIND_SERVICE"]
#       tighten: fewer
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.4"
#     - document: "Kubernetes Pod Security Standards, restricted"
#       section: "Capabilities"
#     - document: "Trivy checks"
#       section: "KSV-0003, KSV-0022, KSV-0106"
#   remediation: >-
#     Drop ALL, and add NET_BIND_SERVICE at most.
package sandboxio.isolation.capabilities

deny contains {"path": ["process", "cap_add", i], "message": message} if {
	some i
	capability := input.resource.process.cap_add[i]
	not capability in data.params.allowed_capabilities
	message := sprintf("%s is added", [capability])
}

deny contains {"path": ["process", "cap_drop"], "message": "the capabilities of the engine's default are kept"} if {
	not "ALL" in input.resource.process.cap_drop
	is_array(input.resource.process.cap_drop)
}
