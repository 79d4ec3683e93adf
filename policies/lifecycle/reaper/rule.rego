# METADATA
# scope: package
# title: A reaper covers it
# description: >-
#   A sandbox that outlives its program, a crash or a paused engine stands open and on the bill until somebody
#   looks. A name that no schedule of the plan has sweeps nothing.
# custom:
#   id: SBX-LIF-001
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, graph]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     other_reapers:
#       description: names of reaper schedules that are kept elsewhere than in the plan
#       default: []
#       tighten: fewer
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.4.5 Rogue containers"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI10"
#   remediation: >-
#     Set reaper to the name of a sandboxio_reaper_schedule of the same backend, best as a reference. If the
#     schedule is in another configuration, name it in the parameter other_reapers.
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

deny contains {"path": ["nodes", node, "reaper"], "message": message} if {
	some node
	input.graph.nodes[node].coverage == "none"
	reaper := input.graph.nodes[node].reaper
	reaper != null # of what has none, the resource's own judgement speaks
	not reaper in data.params.other_reapers
	message := sprintf("no schedule of this plan sweeps by the name %s", [reaper])
}

warn contains {"path": ["nodes", node, "reaper"], "message": message} if {
	some node
	input.graph.nodes[node].coverage == "dry-run"
	message := "its schedule is a dry run, which removes nothing"
}
