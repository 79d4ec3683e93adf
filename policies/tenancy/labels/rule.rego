# METADATA
# scope: package
# title: It says whose it is
# description: >-
#   What has no owner is cleaned up by nobody, and no rule can tell tenants apart that are not named. A sandbox
#   that a program makes has its owner; one for code of several tenants names the tenant as well.
# custom:
#   id: SBX-TEN-001
#   severity: medium
#   effect: warn
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     required_labels:
#       description: labels that there must be
#       default: ["owner"]
#       tighten: more
#   sources:
#     - document: "Gatekeeper library"
#       section: "requiredlabels"
#     - document: "NIST SP 800-190"
#       section: "4.3.4"
#   remediation: >-
#     Add the label, as in labels = { owner = "team-a" }.
package sandboxio.tenancy.labels

warn contains {"path": ["labels", name], "message": message} if {
	some name in required
	not labelled(name)
	message := sprintf("there is no label %s", [name])
}

required contains name if some name in data.params.required_labels

required contains "tenant" if {
	input.kind == "sandbox"
	input.resource.multi_tenant == true
}

labelled(name) if not input.resource.labels[name] in {null, ""}

labelled("owner") if input.resource.owner != null

labelled("tenant") if input.resource.tenant != null
