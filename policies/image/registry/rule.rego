# METADATA
# scope: package
# title: The registry is one of the list
# description: >-
#   Names that look alike, and registries that anybody can run, bring in images that nobody meant. An image id
#   names no registry.
# custom:
#   id: SBX-IMG-003
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, container, image]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     allowed_registries:
#       description: registries that images may come from
#       default: ["docker.io", "gcr.io", "ghcr.io", "mcr.microsoft.com", "public.ecr.aws", "quay.io", "registry.gitlab.com", "registry.k8s.io"]
#       tighten: fewer
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "4.2"
#     - document: "NIST SP 800-190"
#       section: "4.1.5 Use of untrusted images"
#     - document: "Trivy checks"
#       section: "KSV-0034, KSV-0125"
#   remediation: >-
#     Mirror the image to a registry of the list, or have yours named in the parameter allowed_registries.
package sandboxio.image.registry

deny contains {"path": ["image"], "message": message} if {
	registry := input.resource.image.registry
	registry != null
	not registry in data.params.allowed_registries
	message := sprintf("%s is none of the registries that may be used", [registry])
}
