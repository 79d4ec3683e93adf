# METADATA
# scope: package
# title: No secrets in arguments of a build
# description: >-
#   An image keeps the arguments it was built with, for ever, and every sandbox made from it has them.
# custom:
#   id: SBX-SEC-003
#   severity: critical
#   effect: deny
#   kinds: [image]
#   stages: [file]
#   waivable: false
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "4.10"
#     - document: "NIST SP 800-190"
#       section: "4.1.4"
#     - document: "Trivy checks"
#       section: "DS-0031"
#   remediation: >-
#     Revoke it, since it has been written down; then give the build a new one as a secret mount.
package sandboxio.secrets.build_args

deny contains {"path": ["build_args", input.resource.build_args[i].name], "message": message} if {
	some i
	input.facts.build_args[i].credential_name
	message := "it is named like a credential and has a value"
}

deny contains {"path": ["build_args", input.resource.build_args[i].name], "message": message} if {
	some i
	not input.facts.build_args[i].credential_name
	detector := input.facts.build_args[i].detector
	not detector in {null, "high_entropy"}
	message := sprintf("this has the shape of a credential (%s)", [detector])
}

warn contains {"path": ["build_args", input.resource.build_args[i].name], "message": message} if {
	some i
	not input.facts.build_args[i].credential_name
	input.facts.build_args[i].detector == "high_entropy"
	message := "this looks random enough to be a credential"
}
