# METADATA
# scope: package
# title: The root file system is read-only
# description: >-
#   A writable root lets an intruder change the programs that run next.
# custom:
#   id: SBX-ISO-011
#   severity: low
#   effect: warn
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.13"
#   remediation: >-
#     Leave profile at strict; /work, /tmp and /run are writable there. Mount the root of others' containers
#     read-only, with a tmpfs where they write.
package sandboxio.isolation.writable_root

warn contains {"path": ["profile"], "message": "the profile compat makes the root file system writable"} if {
	input.resource.profile == "compat"
}

warn contains {"path": ["process", "read_only_root"], "message": "the root file system is writable"} if {
	input.kind == "container"
	input.resource.process.read_only_root != true
}
