# METADATA
# scope: package
# title: Nothing runs privileged
# description: >-
#   A privileged container has every capability and every device: it is root on the host. So is a HostProcess
#   container of Windows.
# custom:
#   id: SBX-ISO-003
#   severity: critical
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: false
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.5"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "Privileged Containers"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "HostProcess"
#     - document: "NIST SP 800-190"
#       section: "4.4.3"
#     - document: "Trivy checks"
#       section: "KSV-0017"
#   remediation: >-
#     Take privileged, or host_process, out. A program that needs a container engine gets one inside a virtual machine.
package sandboxio.isolation.privileged

deny contains {"path": ["process", "privileged"], "message": "it is root on the host"} if {
	input.resource.process.privileged == true
}
