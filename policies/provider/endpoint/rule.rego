# METADATA
# scope: package
# title: The engine is spoken to in private
# description: >-
#   Who reaches an engine without proof is root on its host, and who reads along has every secret that passes.
# custom:
#   id: SBX-PRV-001
#   severity: high
#   effect: deny
#   kinds: [provider]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "2.7"
#     - document: "NIST SP 800-190"
#       section: "4.3.2"
#   remediation: >-
#     Use a local socket, ssh://, or TLS with certificates for both ends.
package sandboxio.provider.endpoint

deny contains {"path": ["provider", "endpoint"], "message": "the way to the engine is open to whoever is on it"} if {
	not input.facts.endpoint.local
	input.facts.endpoint.scheme != "ssh"
	exposed
}

exposed if input.facts.endpoint.scheme == "http"

exposed if input.resource.provider.tls == false

exposed if {
	input.facts.endpoint.scheme in {"tcp", ""}
	input.resource.provider.tls == null
}
