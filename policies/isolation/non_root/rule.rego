# METADATA
# scope: package
# title: It is not root, and cannot become it
# description: >-
#   A fault in the engine or the kernel is worth much more to root. Without no_new_privileges any setuid program
#   of the image is a way there. Where the image decides, that is warned of: most say root.
# custom:
#   id: SBX-ISO-010
#   severity: medium
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "4.1"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.26"
#     - document: "Kubernetes Pod Security Standards, restricted"
#       section: "Running as Non-root"
#     - document: "Kubernetes Pod Security Standards, restricted"
#       section: "Privilege Escalation"
#     - document: "Trivy checks"
#       section: "DS-0002, KSV-0012, KSV-0001"
#   remediation: >-
#     Set a user other than root, and no-new-privileges in security_opts; of pods, run_as_non_root = true and
#     allow_privilege_escalation = false.
package sandboxio.isolation.non_root

deny contains {"path": ["process", "user"], "message": "it runs as root"} if {
	input.resource.process.user != null
	regex.match(`^(0+|root)(:.*)?$`, input.resource.process.user)
}

deny contains {"path": ["process", "no_new_privileges"], "message": "a setuid program makes it root"} if {
	input.resource.process.no_new_privileges != true
}

warn contains {"path": ["process", "user"], "message": "the image decides who it runs as, and most say root"} if {
	input.resource.process.user == null
	input.resource.process.non_root != true
}
