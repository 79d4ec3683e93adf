# METADATA
# scope: package
# title: No user or password in a URL
# description: >-
#   postgres://user:password@host and https://token@host end up in plans, state, logs and the sandbox's own
#   configuration.
# custom:
#   id: SBX-SEC-004
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy, container, image, provider]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "NIST SP 800-190"
#       section: "4.1.4"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "4.10"
#   remediation: >-
#     Write the URL without them, and pass the password as a secret of the command that needs it.
package sandboxio.secrets.url_userinfo

deny contains {"path": path, "message": "this holds a URL with a user or a password in it"} if {
	some path in input.facts.userinfo
}
