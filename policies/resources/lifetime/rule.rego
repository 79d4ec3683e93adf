# METADATA
# scope: package
# title: A lifetime is there, and bounded
# description: >-
#   A runaway or hijacked program must end. Whatever else fails, its time runs out.
# custom:
#   id: SBX-RES-001
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_lifetime_seconds:
#       description: longest lifetime in seconds
#       default: 3600
#       tighten: lower
#     max_lifetime_trusted_seconds:
#       description: longest lifetime in seconds of code that is trusted
#       default: 14400
#       tighten: lower
#   sources:
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI08 and ASI10"
#     - document: "OWASP Top 10 for LLM Applications 2025"
#       section: "LLM10 Unbounded Consumption"
#   remediation: >-
#     Set lifetime to an hour or less; code that is trusted, with a reason, may have four. A pod has
#     active_deadline_seconds; a container that nothing can end is better made as a sandbox.
package sandboxio.resources.lifetime

import data.sandboxio.lib.cap

deny contains {"path": ["lifetime_seconds"], "message": message} if {
	not endless
	message := cap.problem(input.resource.lifetime_seconds, limit, " s")
}

warn contains {"path": ["lifetime_seconds"], "message": message} if {
	endless
	message := "nothing ends this container but somebody who remembers it"
}

# Others' containers have no lifetime that could be left out.
endless if {
	input.kind == "container"
	input.resource.lifetime_seconds == null
}

limit := data.params.max_lifetime_trusted_seconds if input.resource.trust == "trusted"

limit := data.params.max_lifetime_seconds if input.resource.trust != "trusted"
