# METADATA
# scope: package
# title: No identity that nobody listed
# description: >-
#   A service account's token in every pod is a credential that nobody wrote down, and any code in the pod can
#   use it.
# custom:
#   id: SBX-SEC-006
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI03"
#     - document: "NIST SP 800-190"
#       section: "4.3.1"
#     - document: "Trivy checks"
#       section: "KSV-0036"
#   remediation: >-
#     Set automount_service_account_token = false, and hand over what is needed as a secret of the command that
#     needs it.
package sandboxio.secrets.service_account

deny contains {"path": ["service_account_token"], "message": message} if {
	input.resource.service_account_token == true
	message := "the token of a service account is mounted"
}
