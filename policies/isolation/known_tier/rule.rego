# METADATA
# scope: package
# title: The runtime is one whose isolation is known
# description: >-
#   A runtime that nobody knows may isolate less than a container does. What cannot be shown counts for nothing,
#   whatever its name promises.
# custom:
#   id: SBX-ISO-002
#   severity: critical
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: false
#   params:
#     known_runtimes:
#       description: runtimes that isolate at least as containers do
#       default: []
#       tighten: fewer
#   sources:
#     - document: "sandboxio design"
#       section: "1 What it is"
#     - document: "microsoft/agent-governance-toolkit"
#       section: "issue 2992"
#   remediation: >-
#     Leave the runtime out, or use runsc or kata; if the owner of the policy knows yours, name it in the
#     parameter known_runtimes.
package sandboxio.isolation.known_tier

import data.sandboxio.lib.tier

deny contains {"path": ["process", "runtime"], "message": message} if {
	tier.rank(input.resource.isolation) == 0
	not input.resource.process.runtime in data.params.known_runtimes
	message := sprintf("what the runtime %v isolates is not known", [input.resource.process.runtime])
}
