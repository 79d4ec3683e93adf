# METADATA
# scope: package
# title: No setting of the kernel, no mount leaks to the host
# description: >-
#   Most kernel parameters are the whole host's, and a mount with shared propagation appears on the host. Where its
#   cgroups can be written to, a program moves out of its own caps.
# custom:
#   id: SBX-ISO-012
#   severity: medium
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   params:
#     safe_sysctls:
#       description: kernel parameters that a container has for itself
#       default: ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_syncookies"]
#       tighten: fewer
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.20"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "Sysctls"
#     - document: "Trivy checks"
#       section: "KSV-0026"
#   remediation: >-
#     Take the parameter out, set the propagation to private or rslave, and take writable-cgroups out of security_opts.
package sandboxio.isolation.host_state

deny contains {"path": ["process", "sysctls", i], "message": message} if {
	some i
	name := input.resource.process.sysctls[i]
	not name in data.params.safe_sysctls
	message := sprintf("%s is not known to be the container's own", [name])
}

deny contains {"path": ["process", "writable_cgroups"], "message": "it can write to what its caps are set by"} if {
	input.resource.process.writable_cgroups == true
}

deny contains {"path": ["mounts", i, "propagation"], "message": "what is mounted inside appears on the host"} if {
	some i
	input.resource.mounts[i].propagation in {"shared", "rshared"}
}
