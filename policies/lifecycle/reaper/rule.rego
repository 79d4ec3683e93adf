# METADATA
# scope: package
# title: A reaper covers it
# description: >-
#   A sandbox that outlives its program, a crash or a paused engine stands open and on the bill until somebody
#   looks.
# custom:
#   id: SBX-LIF-001
#   severity: high
#   effect: deny
#   kinds: [template, sandbox]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.4.5 Rogue containers"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI10"
#   remediation: >-
#     Set reaper to the name of a sandboxio_reaper_schedule.
package sandboxio.lifecycle.reaper

deny contains {"path": ["reaper"], "message": "no reaper schedule covers the sandboxes made from this template"} if {
	input.kind == "template"
	input.resource.reaper == null
}

warn contains {"path": ["reaper"], "message": "no reaper schedule covers this detached sandbox"} if {
	input.kind == "sandbox"
	input.resource.detached == true
	input.resource.reaper == null
}
