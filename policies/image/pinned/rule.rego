# METADATA
# scope: package
# title: The image is pinned by digest
# description: >-
#   Tags move. What was reviewed must be what runs.
# custom:
#   id: SBX-IMG-001
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, container, image]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.1.5 Use of untrusted images"
#     - document: "NIST SP 800-190"
#       section: "4.2.2"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "4.5"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI04"
#   remediation: >-
#     Write repository@sha256:…, or the image id sha256:… where there is no registry.
package sandboxio.image.pinned

deny contains {"path": ["image"], "message": message} if {
	input.resource.image.pinned != true
	not made
	message := problem
}

made if input.resource.image.made == true

problem := "no image is named, so the backend's default is used, whatever it is" if {
	input.resource.image.ref == null
	input.resource.image.pinned == null
}

problem := "this is no reference to an image" if {
	input.resource.image.ref == null
	input.resource.image.pinned == false
}

problem := sprintf("%s has no digest", [input.resource.image.ref]) if input.resource.image.ref != null
