package docker

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	namePrefix   = "sandboxio-"
	keeperPrefix = "sandboxio-keeper-"
	volumePrefix = "sandboxio-guest-"

	// labelDetached tells in lists what otherwise only the guest's argv says.
	labelDetached = driver.LabelPrefix + "detached"
	// labelProxied is "true" where there is a way out in mode proxy, which only
	// the creator's process sees.
	labelProxied = driver.LabelPrefix + "proxied"

	// labelHelper tells helper images apart: "guest" or "keeper".
	labelHelper = driver.LabelPrefix + "helper"
)

var (
	instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	containerID  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	networkName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	scheduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
)

// containerName holds what may change later, the deadline, because labels
// cannot change on Docker and a name can.
func containerName(instance string, deadline time.Time) string {
	return namePrefix + instance + "-" + strconv.FormatInt(deadline.Unix(), 10)
}

// parseName reads what containerName wrote.
func parseName(name string) (instance string, deadline time.Time, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "/"), namePrefix)
	if !ok {
		return "", time.Time{}, false
	}
	i := strings.LastIndexByte(rest, '-')
	if i < 1 || !instanceName.MatchString(rest[:i]) {
		return "", time.Time{}, false
	}
	sec, err := strconv.ParseUint(rest[i+1:], 10, 62)
	if err != nil || sec == 0 || strconv.FormatUint(sec, 10) != rest[i+1:] {
		return "", time.Time{}, false
	}
	return rest[:i], time.Unix(int64(sec), 0), true
}

// deadlineOf takes a sandbox's deadline from its name, and the latest that it
// may be given from the label it was created with. The label bounds what the
// name says, and stands in for it should somebody have renamed the container:
// a sweep then comes late, and never before a deadline that was granted.
func deadlineOf(name string, labels map[string]string) (deadline, expires time.Time, ok bool) {
	sec, err := strconv.ParseInt(labels[driver.LabelMaxExpires], 10, 64)
	if err != nil || sec <= 0 {
		return time.Time{}, time.Time{}, false
	}
	expires = time.Unix(sec, 0)
	instance, deadline, ok := parseName(name)
	if !ok || instance != labels[driver.LabelInstance] || deadline.After(expires) {
		return expires, expires, true
	}
	return deadline, expires, true
}

// managed reports whether a container is a sandbox of ours: its labels, and
// the guest as its entrypoint, and the helper volume as its mount. Labels
// alone are not enough, since a container inherits those of its image.
func managed(labels map[string]string, entrypoint string, mounts []container.MountPoint) bool {
	if labels[driver.LabelManaged] != "true" || labels[driver.LabelRole] != driver.RoleSandbox {
		return false
	}
	if entrypoint != guest.Binary {
		return false
	}
	for _, m := range mounts {
		if m.Destination == guest.Dir && strings.HasPrefix(m.Name, volumePrefix) && !m.RW {
			return true
		}
	}
	return false
}

// nonce makes a name this call's own.
func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
