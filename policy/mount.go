package policy

import (
	slash "path"
	"regexp"
	"slices"
	"strings"
)

// MountFacts are what is known of one mount.
type MountFacts struct {
	Host   bool `json:"host"`   // it shows a path of the host
	Socket bool `json:"socket"` // which is, or holds, the socket of a container engine
	System bool `json:"system"` // which is, holds or lies in a place whose content is the host's own
}

// engineSockets are where container engines listen. Sources: their
// documentation, and that of the systems that move them.
var engineSockets = []string{
	"/run/docker.sock", "/run/docker/containerd/containerd.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
	"/run/crio/crio.sock", "/run/cri-dockerd.sock", "/run/dockershim.sock", "/run/buildkit/buildkitd.sock", "/run/k3s/containerd/containerd.sock",
	"/run/user/0/docker.sock", "/var/snap/microk8s/common/run/containerd.sock", "/var/lib/kubelet/device-plugins/kubelet.sock",
}

// systemPlaces hold what the host runs, knows or keeps for its users.
var systemPlaces = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/sys", "/usr", "/users", "/var/lib/containerd",
	"/var/lib/containers", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/rancher", "/var/log", "/var/spool/cron", "/windows",
}

var (
	rootless = regexp.MustCompile(`^/run/user(?:/[0-9]+)?(?:/podman)?$`)
	drive    = regexp.MustCompile(`^[a-zA-Z]:(?:/|$)`)
)

func mountFacts(m Mount) MountFacts {
	if m.Source == nil {
		return MountFacts{Host: m.Type != nil && (*m.Type == "bind" || *m.Type == "pipe")}
	}
	at := strings.ReplaceAll(*m.Source, `\`, "/")
	onHost := strings.ContainsAny(at[:min(len(at), 1)], "/~.$") || drive.MatchString(at)
	if m.Type != nil {
		onHost = *m.Type == "bind" || *m.Type == "pipe"
	}
	if !onHost {
		return MountFacts{}
	}
	home := strings.HasPrefix(at, "~") || strings.HasPrefix(at, "$")
	at = strings.ToLower(hostPath(at))
	f := MountFacts{Host: true, System: home}
	base := slash.Base(at)
	f.Socket = strings.HasSuffix(base, ".sock") && slices.ContainsFunc(engineSockets, func(s string) bool { return slash.Base(s) == base }) ||
		strings.HasSuffix(at, "/pipe/docker_engine") || rootless.MatchString(at) ||
		slices.ContainsFunc(engineSockets, func(s string) bool { return lies(s, at) })
	f.System = f.System || slices.ContainsFunc(systemPlaces, func(s string) bool { return lies(s, at) || lies(at, s) })
	return f
}

// hostPath is at without detours. Systems have /var/run lead to /run.
func hostPath(at string) string {
	at = slash.Clean("/" + drive.ReplaceAllString(at, "/"))
	if rest, ok := strings.CutPrefix(at, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		at = "/run" + rest
	}
	return at
}

// lies reports whether place is top or below it.
func lies(place, top string) bool {
	return place == top || top == "/" || strings.HasPrefix(place, top+"/")
}
