# METADATA
# scope: package
# title: A disk cap is there, and bounded
# description: >-
#   A sandbox without a cap fills the host's disk or memory.
# custom:
#   id: SBX-RES-006
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     max_disk_mib:
#       description: largest writable space in MiB
#       default: 65536
#       tighten: lower
#   sources:
#     - document: "Firecracker production host setup"
#       section: "Jailer, Disk"
#     - document: "NIST SP 800-190"
#       section: "4.4.3"
#   remediation: >-
#     Set resources.disk_mib to what the program needs.
package sandboxio.resources.disk

import data.sandboxio.lib.cap

deny contains {"path": ["resources", "disk_mib"], "message": message} if {
	not without_disk
	message := cap.problem(input.resource.resources.disk_mib, data.params.max_disk_mib, " MiB")
}

# Of others' containers, those whose root is read-only fill nothing of their own.
without_disk if {
	input.kind == "container"
	input.resource.resources.disk_mib == null
	input.resource.process.read_only_root == true
}
