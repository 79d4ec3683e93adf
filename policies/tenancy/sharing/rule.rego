# METADATA
# scope: package
# title: Tenants share no volume and no network
# description: >-
#   What two tenants can both reach, and one of them can write to, is a way from one to the other. The tenant is
#   what the label tenant says.
# custom:
#   id: SBX-TEN-004
#   severity: high
#   effect: deny
#   kinds: [graph]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.3.3"
#     - document: "Daytona documentation"
#       section: "Isolation, linked sandboxes"
#   remediation: >-
#     Give each tenant a volume and a network of its own, or mount read-only everywhere what all of them read.
package sandboxio.tenancy.sharing

deny contains {"path": ["nodes", node, found.field], "message": message} if {
	some found in input.graph.shared
	some node in found.nodes
	message := sprintf("%d tenants use %s (%s)", [found.tenants, found.name, found.field])
}
