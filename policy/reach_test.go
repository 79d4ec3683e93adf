package policy

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestMountsAndWhatTheyShow(t *testing.T) {
	const host, socket, system = 1, 2, 4
	for _, tc := range []struct {
		kind, source string
		want         int
	}{
		{"bind", "/srv/data", host},
		{"", "/srv/data", host},
		{"", "./data", host},
		{"", "cache", 0},
		{"volume", "cache", 0},
		{"volume", "/looks/like/a/path", 0},
		{"tmpfs", "", 0},
		{"bind", "/", host | socket | system},
		{"bind", "/srv/..", host | socket | system},
		{"bind", "/etc/passwd", host | system},
		{"bind", "/etcetera", host},
		{"bind", "/home/me/src", host | system},
		{"", "~/.aws", host | system},
		{"", "$HOME/.ssh", host | system},
		{"bind", "/proc", host | system},
		{"bind", "/var", host | socket | system},
		{"bind", "/var/lib/docker/volumes", host | system},
		{"bind", "/run", host | socket},
		{"bind", "/var/run", host | socket},
		{"bind", "/var/run/", host | socket},
		{"bind", "/var/runner", host},
		{"bind", "//var//run/docker.sock", host | socket},
		{"bind", "/run/../run/docker.sock", host | socket},
		{"bind", "/run/containerd", host | socket},
		{"bind", "/run/user/1000/docker.sock", host | socket},
		{"bind", "/run/user/1000", host | socket},
		{"bind", "/run/user/1000/podman", host | socket},
		{"bind", "/run/user/1000/app", host},
		{"bind", "/srv/proxy/docker.sock", host | socket},
		{"bind", "/srv/app.sock", host},
		{"pipe", `\\.\pipe\docker_engine`, host | socket},
		{"pipe", "//./pipe/app", host},
		{"bind", `C:\`, host | socket | system},
		{"bind", `C:\Users\me`, host | system},
		{"bind", `D:\data`, host},
	} {
		m := Mount{Type: text(tc.kind), Source: &tc.source}
		if got, want := mountFacts(m), (MountFacts{tc.want&host > 0, tc.want&socket > 0, tc.want&system > 0}); got != want {
			t.Errorf("%s %s: %+v, want %+v", tc.kind, tc.source, got, want)
		}
	}
	if !mountFacts(Mount{Type: new("bind")}).Host || mountFacts(Mount{Type: new("volume")}).Host {
		t.Error("a mount without a source is not told by its type")
	}
}

func TestPublishedPortsAndWhoReachesThem(t *testing.T) {
	if !publishFacts(Publish{}).Public {
		t.Error("no address is every address")
	}
	for ip, public := range map[string]bool{
		"": true, "0.0.0.0": true, "::": true, "[::]": true, "10.0.0.1": true, "not-an-address": true, "::ffff:10.0.0.1": true,
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "[::1]": false, "::ffff:127.0.0.1": false, "localhost": false, "LocalHost": false,
	} {
		if got := publishFacts(Publish{HostIP: &ip}).Public; got != public {
			t.Errorf("%s: public is %t", ip, got)
		}
	}
}

func TestWaysToAnEngine(t *testing.T) {
	if got := endpointFacts(nil); got != (EndpointFacts{Local: true}) {
		t.Errorf("none: %+v", got)
	}
	for endpoint, want := range map[string]EndpointFacts{
		"": {Local: true}, "unix:///var/run/docker.sock": {"unix", true}, "npipe:////./pipe/docker_engine": {"npipe", true},
		"tcp://127.0.0.1:2375": {"tcp", true}, "tcp://[::1]:2375": {"tcp", true}, "tcp://localhost:2375": {"tcp", true},
		"tcp://10.0.0.5:2375": {"tcp", false}, "ssh://me@host": {"ssh", false}, "https://k8s.example.com:6443": {"https", false},
		"http://api": {"http", false}, "10.0.0.5:2375": {}, "TCP://h": {"tcp", false}, "localhost:2375": {}, "tcp://%zz": {},
	} {
		if got := endpointFacts(&endpoint); got != want {
			t.Errorf("%s: %+v, want %+v", endpoint, got, want)
		}
	}
}

func TestRuntimesAndTheirTiers(t *testing.T) {
	for name, want := range map[string]driver.Isolation{
		"": driver.Container, "runc": driver.Container, "io.containerd.runc.v2": driver.Container, "nvidia": driver.Container,
		"runsc": driver.UserKernel, "io.containerd.runsc.v1": driver.UserKernel, "gVisor": driver.UserKernel, "runsc-kvm": driver.UserKernel,
		"kata-runtime": driver.MicroVM, "io.containerd.kata.v2": driver.MicroVM, "kata": driver.MicroVM,
		"fast": driver.Unverified, "runcible": driver.Unverified, "-": driver.Unverified,
	} {
		if got := RuntimeIsolation(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func FuzzMount(f *testing.F) {
	f.Add("bind", "/var/run/../run/docker.sock")
	f.Add("", `C:\Users`)
	f.Fuzz(func(t *testing.T, kind, source string) {
		m := mountFacts(Mount{Type: text(kind), Source: &source})
		if !m.Host && (m.Socket || m.System) {
			t.Errorf("%+v", m)
		}
	})
}

func FuzzEndpoint(f *testing.F) {
	f.Add("tcp://10.0.0.5:2375")
	f.Fuzz(func(t *testing.T, s string) {
		if e := endpointFacts(&s); e.Local && e.Scheme == "" && s != "" {
			t.Errorf("%+v", e)
		}
		publishFacts(Publish{HostIP: &s})
		RuntimeIsolation(s)
	})
}
