# METADATA
# scope: package
# title: Paths of the host stay outside
# description: >-
#   What is mounted from the host can be read, and mostly changed: credentials, hooks of a repository, programs
#   that somebody runs next. The owner of the policy can name paths that may be mounted; what the host itself
#   runs, knows or keeps for its users may never be, and no waiver excuses it.
# custom:
#   id: SBX-ISO-006
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   params:
#     allowed_host_paths:
#       description: paths of the host that may be mounted, as the mount has them
#       default: []
#       tighten: fewer
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.6"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "HostPath Volumes"
#     - document: "NIST SP 800-190"
#       section: "4.5.5"
#     - document: "Trivy checks"
#       section: "KSV-0023"
#     - document: "Docker Sandboxes documentation"
#       section: "Workspace defaults"
#   remediation: >-
#     Use a volume, or copy files in; or name the very path in the parameter allowed_host_paths.
package sandboxio.isolation.host_path

deny contains {"path": ["mounts", i, "source"], "message": message, "waivable": false} if {
	some i
	input.facts.mounts[i].system
	message := "this is, holds or lies in a place of the host's own"
}

deny contains {"path": ["mounts", i, "source"], "message": "this path is the host's"} if {
	some i
	input.facts.mounts[i].host
	not input.facts.mounts[i].system
	not input.facts.mounts[i].socket # SBX-ISO-005 speaks of those
	not input.resource.mounts[i].source in data.params.allowed_host_paths
}
