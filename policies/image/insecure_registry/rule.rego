# METADATA
# scope: package
# title: The registry proves who it is
# description: >-
#   Without a verified certificate whoever sits on the way hands out another image.
# custom:
#   id: SBX-IMG-004
#   severity: medium
#   effect: deny
#   kinds: [image]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "2.5"
#     - document: "NIST SP 800-190"
#       section: "4.2.1"
#   remediation: >-
#     Take insecure_skip_verify out, and give the registry a certificate.
package sandboxio.image.insecure_registry

deny contains {"path": ["image", "insecure"], "message": "the certificate of the registry is not verified"} if {
	input.resource.image.insecure == true
}
