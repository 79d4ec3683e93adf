# METADATA
# scope: package
# title: No management or plain-text ports
# description: >-
#   SSH, mail, container engines, kubelets and remote desktops are ways on to other machines, not services
#   that a sandboxed program consumes.
# custom:
#   id: SBX-NET-010
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox, network_policy]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     denied_ports:
#       description: ports that no rule may open
#       default: [21, 22, 23, 25, 69, 111, 135, 137, 138, 139, 161, 389, 445, 465, 512, 513, 514, 587, 873, 2049, 2375, 2376, 2379, 2380, 3389, 5900, 5985, 5986, 6443, 10250, 10255]
#       tighten: more
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.8"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.9"
#   remediation: >-
#     List the ports that the program needs, mostly 443.
package sandboxio.network.dangerous_ports

deny contains {"path": ["network", "egress", i, "ports"], "message": message} if {
	some i, j
	port := input.resource.network.egress[i].ports[j]
	port in data.params.denied_ports
	message := sprintf("port %d is one of the denied ports", [port])
}
