# METADATA
# scope: package
# title: A CPU cap is there, and bounded
# description: >-
#   A sandbox without a cap starves its neighbours, and mines coins well.
# custom:
#   id: SBX-RES-004
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_cpu_millis:
#       description: largest CPU cap in thousandths of a core
#       default: 8000
#       tighten: lower
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.12"
#     - document: "Firecracker production host setup"
#       section: "Jailer, vCPU"
#   remediation: >-
#     Set resources.cpu_millis to what the program needs; 1000 is one core.
package sandboxio.resources.cpu

import data.sandboxio.lib.cap

deny contains {"path": ["resources", "cpu_millis"], "message": message} if {
	message := cap.problem(input.resource.resources.cpu_millis, data.params.max_cpu_millis, " thousandths of a core")
}
