package docker

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestFromURL(t *testing.T) {
	for _, c := range []struct {
		name, dsn string
		want      Options
		refused   string // part of the error; "" = accepted
	}{
		{"the default engine", "docker://", Options{}, ""},
		{"the default engine, with a slash", "docker:///", Options{}, ""},
		{"a socket", "docker:///var/run/docker.sock", Options{Host: "unix:///var/run/docker.sock"}, ""},
		{"a host", "docker://h.example:2376", Options{Host: "tcp://h.example:2376"}, ""},
		{"an IPv6 host", "docker://[::1]:2375", Options{Host: "tcp://[::1]:2375"}, ""},
		{"certificates", "docker://h:2376?certs=/c", Options{Host: "tcp://h:2376", Certs: "/c"}, ""},
		{"plain TCP, asked for", "docker://h:2375?tls=false", Options{Host: "tcp://h:2375", Plain: true}, ""},
		{"TLS, said twice", "docker://h:2376?tls=true", Options{Host: "tcp://h:2376"}, ""},
		{"all scalars", "docker://?image=sha256:" + strings.Repeat("a", 64) + "&storage_quota=true&keeper_socket=/s&keeper_image=k:1",
			Options{Image: "sha256:" + strings.Repeat("a", 64), StorageQuota: true, KeeperSocket: "/s", KeeperImage: "k:1"}, ""},

		{"a runtime", "docker://?runtime=runsc", Options{Runtime: "runsc"}, ""},

		{"a runtime that is a path", "docker://?runtime=/usr/bin/runsc", Options{}, "runtime"},
		{"another scheme", "podman://", Options{}, "scheme"},
		{"a password", "docker://u:hunter2@h:2376", Options{}, "DOCKER_CERT_PATH"},
		{"a user", "docker://u@h:2376", Options{}, "DOCKER_CERT_PATH"},
		{"a host without a port", "docker://h", Options{}, ":2376"},
		{"a host and a path", "docker://h:2376/x", Options{}, "both"},
		{"a path that climbs", "docker:///var/../etc/docker.sock", Options{}, "not clean"},
		{"an opaque address", "docker:foo", Options{}, "not a docker address"},
		{"a fragment", "docker://#x", Options{}, "not a docker address"},
		{"an unknown parameter", "docker://?colour=red", Options{}, "backend.colour"},
		{"a parameter given twice", "docker://?tls=true&tls=false", Options{}, "backend.tls"},
		{"a flag that is none", "docker://?tls=maybe", Options{}, "backend.tls"},
		{"a token", "docker://?token=hunter2", Options{}, "DOCKER_CERT_PATH"},
		{"a password as a parameter", "docker://?registry_password=hunter2", Options{}, "DOCKER_CERT_PATH"},
		{"a key", "docker://?tls_key=hunter2", Options{}, "DOCKER_CERT_PATH"},
		{"certificates without TLS", "docker://h:2375?tls=false&certs=/c", Options{}, "certs"},
		{"an image that is none", "docker://?image=://", Options{}, "image"},
		{"a relative keeper socket", "docker://?keeper_socket=s", Options{}, "keeper_socket"},
		{"a malformed query", "docker://?a=%zz", Options{}, "malformed"},
		{"port zero", "docker://h:0", Options{}, "host:port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.dsn)
			if err != nil {
				t.Fatal(err)
			}
			got, err := FromURL(u)
			if c.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
				return
			}
			if !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got %+v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats a credential: %v", err)
			}
			for _, p := range driver.Problems(err) {
				if p.Field == "" || p.Hint == "" {
					t.Errorf("no field or no fix: %#v", p)
				}
			}
		})
	}
}

func TestOpenRefusesHostsItCannotReach(t *testing.T) {
	for host, says := range map[string]string{
		"ssh://me@h":     "ssh -nNT -L",
		"unix://rel/x":   "absolute",
		"/var/run/x":     "no engine address",
		"http://h:80":    "scheme",
		"tcp://h":        "host:port",
		"tcp://:2375":    "host:port",
		"unix:///a/../b": "clean",
	} {
		if _, err := Open(t.Context(), Options{Host: host}); !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// An address may hold what nobody should have put there, and an error of it is
// printed.
func TestAnAddressWithAPasswordIsRefusedAndNotQuoted(t *testing.T) {
	for _, host := range []string{"tcp://user:hunter2@127.0.0.1:1", "tcp://hunter2@127.0.0.1:1", "ssh://user:hunter2@h", "tcp://h:1/hunter2",
		"tcp://h:1?x=hunter2", "tcp://h:1#hunter2", "user:hunter2@h:1", "http://user:hunter2@h"} {
		if _, err := Open(t.Context(), Options{Host: host}); !errors.Is(err, driver.CodeInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func FuzzFromURL(f *testing.F) {
	for _, s := range []string{"docker://", "docker:///var/run/docker.sock", "docker://h:2376?certs=/c&tls=true", "docker://?image=x@sha256:00", "docker://[::1]:1?storage_quota=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		o, err := FromURL(u)
		if err != nil {
			if !errors.Is(err, driver.CodeInvalid) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if _, err := Open(t.Context(), o); err != nil {
			t.Errorf("%q is accepted by FromURL and refused by Open: %v", s, err)
		}
	})
}
