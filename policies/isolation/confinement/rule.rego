# METADATA
# scope: package
# title: Seccomp and security modules stay on
# description: >-
#   Without seccomp, AppArmor or SELinux, and with all of /proc in reach, every system call and every setting of
#   the kernel is a chance. That no profile is named at all is warned of, since some engines then use none.
# custom:
#   id: SBX-ISO-008
#   severity: high
#   effect: deny
#   kinds: [container]
#   stages: [file]
#   waivable: true
#   sources:
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.2"
#     - document: "CIS Docker Benchmark 1.6.0"
#       section: "5.22"
#     - document: "Kubernetes Pod Security Standards, restricted"
#       section: "Seccomp"
#     - document: "Kubernetes Pod Security Standards, baseline"
#       section: "SELinux"
#     - document: "Firecracker production host setup"
#       section: "Seccomp"
#     - document: "Trivy checks"
#       section: "KSV-0104"
#   remediation: >-
#     Take unconfined out; of pods, set the profile RuntimeDefault.
package sandboxio.isolation.confinement

deny contains {"path": ["process", "seccomp"], "message": "every system call is let through"} if {
	input.resource.process.seccomp == "unconfined"
}

deny contains {"path": ["process", "apparmor"], "message": "AppArmor is switched off"} if {
	input.resource.process.apparmor == "unconfined"
}

deny contains {"path": ["process", "selinux"], "message": "SELinux is switched off"} if {
	input.resource.process.selinux == "unconfined"
}

deny contains {"path": ["process", "unmasked_proc"], "message": "nothing of /proc and /sys is masked"} if {
	input.resource.process.unmasked_proc == true
}

warn contains {"path": ["process", "seccomp"], "message": "no profile is named, and some engines then use none"} if {
	input.resource.process.seccomp == null
}
