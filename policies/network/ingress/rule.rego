# METADATA
# scope: package
# title: Nothing is published to strangers, and ports are from a list
# description: >-
#   A port of a program that nobody has read, open to whoever finds it, is a shell for the Internet. Exposed
#   ports ask callers for proof, and there are few that a program needs.
# custom:
#   id: SBX-NET-012
#   severity: high
#   effect: deny
#   kinds: [template, sandbox, network_policy, container]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     ingress_ports:
#       description: ports that authenticated callers may reach
#       default: [80, 443, 3000, 5000, 8000, 8080, 8443, 8888]
#       tighten: fewer
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.9"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.14"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "Host Ports"
#     - document: "E2B documentation"
#       section: "allowPublicTraffic"
#     - document: "Trivy checks"
#       section: "KSV-0024"
#   remediation: >-
#     Expose one of the ports in ingress_ports; bind published ports to 127.0.0.1 and put something in front of
#     them that asks callers who they are.
package sandboxio.network.ingress

deny contains {"path": ["network", "expose", i], "message": message} if {
	some i
	port := input.resource.network.expose[i]
	not port in data.params.ingress_ports
	message := sprintf("port %d is none of the ports that may be exposed", [port])
}

deny contains {"path": ["network", "publish", i], "message": message} if {
	some i
	input.facts.publish[i].public
	message := "whoever reaches the host reaches this port, and nobody is asked who they are"
}
