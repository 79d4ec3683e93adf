# METADATA
# scope: package
# title: A reaper's maximum age is bounded
# description: >-
#   A reaper that keeps sandboxes for a month is decoration. Without a maximum age it goes by each sandbox's
#   own deadline, which SBX-RES-001 bounds.
# custom:
#   id: SBX-LIF-002
#   severity: high
#   effect: deny
#   kinds: [reaper_schedule]
#   stages: [plan, file, apply]
#   waivable: true
#   params:
#     max_reaper_age_seconds:
#       description: largest maximum age of a reaper schedule in seconds
#       default: 86400
#       tighten: lower
#   sources:
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI10"
#   remediation: >-
#     Set max_age to a day or less.
package sandboxio.lifecycle.reaper_age

import data.sandboxio.lib.cap

deny contains {"path": ["schedule", "max_age_seconds"], "message": message} if {
	input.resource.schedule.max_age_seconds != null
	message := cap.problem(input.resource.schedule.max_age_seconds, data.params.max_reaper_age_seconds, " s")
}
