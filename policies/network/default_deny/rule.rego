# METADATA
# scope: package
# title: Egress denies by default
# description: >-
#   A container on an ordinary network reaches every address, so that one injected instruction is enough to
#   carry data away. Sandboxes of ours have no network that nobody asked for.
# custom:
#   id: SBX-NET-001
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.4.2 Unbounded network access from containers"
#     - document: "Docker Sandboxes documentation"
#       section: "Default security posture, Network defaults"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI02 and ASI05"
#   remediation: >-
#     Set network_mode = "none", or make it as a sandbox, which has an allowlist. A review does not look up which
#     network policy selects a pod, or whether a network is internal: waive it, and name what confines it.
package sandboxio.network.default_deny

deny contains {"path": ["network", "default"], "message": message} if {
	input.resource.network.default != "deny"
	message := "it reaches whatever its network reaches, the Internet included"
}
