package policy

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// PublishFacts are what is known of one published port.
type PublishFacts struct {
	Public bool `json:"public"` // others than the host itself reach it
}

func publishFacts(p Publish) PublishFacts {
	return PublishFacts{Public: p.HostIP == nil || !loopback(*p.HostIP)}
}

// loopback reports whether a host, by address or name, is the machine itself.
// What cannot be read is not.
func loopback(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && driver.Classify(a) == driver.ClassLoopback || strings.EqualFold(host, "localhost")
}

// EndpointFacts are what is known of the way to an engine.
type EndpointFacts struct {
	Scheme string `json:"scheme"` // "unix", "tcp" and so on; "" when there is none
	Local  bool   `json:"local"`  // it does not leave the machine
}

func endpointFacts(endpoint *string) EndpointFacts {
	if endpoint == nil || *endpoint == "" {
		return EndpointFacts{Local: true}
	}
	u, err := url.Parse(*endpoint)
	if err != nil || !strings.Contains(*endpoint, "://") {
		return EndpointFacts{}
	}
	return EndpointFacts{Scheme: u.Scheme, Local: slices.Contains([]string{"unix", "npipe", "fd"}, u.Scheme) || loopback(u.Hostname())}
}

// RuntimeIsolation is the tier that the name of a container runtime stands
// for: "" is the engine's default. Names can be given to anything, so that
// this is good enough for a review and never for a measurement; a name nobody
// knows stands for nothing.
func RuntimeIsolation(name string) driver.Isolation {
	name = strings.ToLower(name)
	name = strings.TrimPrefix(name, "io.containerd.")
	for tier, names := range runtimes {
		for _, n := range names {
			if rest, ok := strings.CutPrefix(name, n); ok && (rest == "" || n != "" && strings.ContainsAny(rest[:1], ".-_")) {
				return tier
			}
		}
	}
	return driver.Unverified
}

// runtimes by tier. Sources: the projects' documentation of their names.
var runtimes = map[driver.Isolation][]string{
	driver.Container:  {"", "runc", "crun", "youki", "nvidia", "sysbox-runc"},
	driver.UserKernel: {"runsc", "gvisor"},
	driver.MicroVM:    {"kata", "firecracker"},
}
