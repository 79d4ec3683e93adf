# METADATA
# scope: package
# title: A memory cap is there, and bounded
# description: >-
#   One sandbox without a cap can take the whole host's memory.
# custom:
#   id: SBX-RES-003
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_memory_mib:
#       description: largest memory cap in MiB
#       default: 16384
#       tighten: lower
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.11"
#     - document: "NIST SP 800-190"
#       section: "4.4.3"
#     - document: "Firecracker production host setup"
#       section: "Jailer, Memory"
#   remediation: >-
#     Set resources.memory_mib to what the program needs.
package sandboxio.resources.memory

import data.sandboxio.lib.cap

deny contains {"path": ["resources", "memory_mib"], "message": message} if {
	message := cap.problem(input.resource.resources.memory_mib, data.params.max_memory_mib, " MiB")
}
