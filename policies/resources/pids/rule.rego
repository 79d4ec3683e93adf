# METADATA
# scope: package
# title: A process cap is there, and bounded
# description: >-
#   Where the kernel is shared, a fork bomb without a cap takes it down.
# custom:
#   id: SBX-RES-005
#   severity: high
#   effect: deny
#   kinds: [template, sandbox]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_pids:
#       description: largest number of processes and threads
#       default: 1024
#       tighten: lower
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.29"
#   remediation: >-
#     Set resources.pids to 1024 or less.
package sandboxio.resources.pids

import data.sandboxio.lib.cap

deny contains {"path": ["resources", "pids"], "message": message} if {
	message := cap.problem(input.resource.resources.pids, data.params.max_pids, "")
}
