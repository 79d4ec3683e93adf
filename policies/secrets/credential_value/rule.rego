# METADATA
# scope: package
# title: No text that looks like a credential
# description: >-
#   Keys and tokens have shapes of their own. In env, labels or comments they end up in plans, state, logs and
#   the sandbox's own configuration. A text that only looks random is warned of.
# custom:
#   id: SBX-SEC-002
#   severity: critical
#   effect: deny
#   kinds: [template, sandbox, network_policy, container, image, provider]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.1.4"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI03"
#   remediation: >-
#     Revoke it, since it has been written down; then pass a new one as a secret of the command that needs it.
package sandboxio.secrets.credential_value

deny contains {"path": found.path, "message": message} if {
	some found in input.facts.credentials
	found.detector != "high_entropy"
	message := sprintf("this has the shape of a credential (%s)", [found.detector])
}

warn contains {"path": found.path, "message": "this looks random enough to be a credential"} if {
	some found in input.facts.credentials
	found.detector == "high_entropy"
}
