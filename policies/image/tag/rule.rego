# METADATA
# scope: package
# title: The image has a version
# description: >-
#   Where there is no digest, a tag such as latest, or none, means whatever was pushed last.
# custom:
#   id: SBX-IMG-002
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, container, image]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.28"
#     - document: "Trivy checks"
#       section: "DS-0001, KSV-0013"
#   remediation: >-
#     Write a digest, or a version where a waiver allows to go without.
package sandboxio.image.tag

deny contains {"path": ["image"], "message": message} if {
	input.resource.image.digest == null
	input.resource.image.tag in {null, "latest"}
	message := sprintf("%s means whatever was pushed last", [input.resource.image.ref])
	input.resource.image.ref != null
	not made
}

made if input.resource.image.made == true
