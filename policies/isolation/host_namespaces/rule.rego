# METADATA
# scope: package
# title: Namespaces are its own
# description: >-
#   In the host's namespaces a program sees the host's processes, listens on its addresses, or talks to its
#   daemons. In another container's it sees and reaches that one's processes or memory.
# custom:
#   id: SBX-ISO-004
#   severity: critical
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: false
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.10"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.16"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.17"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.21"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.31"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "Host Namespaces"
#     - document: "Trivy checks"
#       section: "KSV-0008, KSV-0009, KSV-0010"
#   remediation: >-
#     Take the host's namespaces out: network_mode, pid_mode, ipc_mode, userns_mode and cgroupns_mode of a
#     container, host_network, host_pid and host_ipc of a pod. What two programs share goes over a network or a volume.
package sandboxio.isolation.host_namespaces

deny contains {"path": ["process", "host_namespaces", i], "message": message} if {
	some i
	message := sprintf("it shares the host's %s namespace", [input.resource.process.host_namespaces[i]])
}

deny contains {"path": ["process", "joined_namespaces", i], "message": message} if {
	some i
	message := sprintf("it shares the %s namespace of another container", [input.resource.process.joined_namespaces[i]])
}
