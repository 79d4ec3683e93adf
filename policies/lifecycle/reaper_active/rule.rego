# METADATA
# scope: package
# title: A reaper kills, and often
# description: >-
#   A schedule in dry run only reports, and one that sweeps once a week leaves a week to whatever it should
#   have found. How often a cron expression fires is not judged.
# custom:
#   id: SBX-LIF-003
#   severity: medium
#   effect: warn
#   kinds: [reaper_schedule]
#   stages: [plan, file, apply]
#   waivable: true
#   params:
#     max_reaper_interval_seconds:
#       description: longest time between two sweeps in seconds
#       default: 900
#       tighten: lower
#   sources:
#     - document: "sandboxio design"
#       section: "8 Reaping, pools"
#   remediation: >-
#     Set dry_run to false and sweep every 15 minutes or more often.
package sandboxio.lifecycle.reaper_active

import data.sandboxio.lib.cap

warn contains {"path": ["schedule", "dry_run"], "message": "a dry run removes nothing"} if {
	input.resource.schedule.dry_run == true
}

warn contains {"path": ["schedule", "interval_seconds"], "message": message} if {
	input.resource.schedule.interval_seconds != null
	message := cap.problem(input.resource.schedule.interval_seconds, data.params.max_reaper_interval_seconds, " s")
}
