# METADATA
# scope: package
# title: No value in a variable named like a credential
# description: >-
#   Any code in the sandbox reads its environment, and so does whoever can inspect the sandbox from outside. A
#   variable named like a credential mostly is one.
# custom:
#   id: SBX-SEC-001
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     allowed_env_names:
#       description: variables that look like credentials by name only
#       default: []
#       tighten: fewer
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.1.4"
#     - document: "Docker Sandboxes documentation"
#       section: "Credential defaults"
#     - document: "OWASP Top 10 for Agentic Applications 2026"
#       section: "ASI03"
#   remediation: >-
#     Pass it as a secret of the command that needs it, and declare its name in secrets. If it is none, name
#     it in the parameter allowed_env_names.
package sandboxio.secrets.credential_name

deny contains {"path": ["env", name], "message": message} if {
	some i
	input.facts.env[i].credential_name
	name := input.resource.env[i].name
	not name in data.params.allowed_env_names
	message := sprintf("%s is named like a credential and has a value", [name])
}
