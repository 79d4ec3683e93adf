# METADATA
# scope: package
# title: No devices of the host
# description: >-
#   Every device is a driver in the host's kernel that hostile code can speak to; some, as /dev/mem, are the
#   host itself. A disk that a pod gets as a block device counts, and so does what a device plugin hands out.
# custom:
#   id: SBX-ISO-009
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.18"
#     - document: "NIST SP 800-190"
#       section: "4.4.3"
#     - document: "NVIDIA/OpenShell security policy"
#       section: "/proc is made writable for CUDA"
#   remediation: >-
#     Take the device out. Code that needs one and is not trusted runs in a virtual machine that owns it.
package sandboxio.isolation.devices

deny contains {"path": ["process", "devices", i], "message": message} if {
	some i
	message := sprintf("%s is a device of the host", [input.resource.process.devices[i]])
}
