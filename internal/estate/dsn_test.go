package estate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const canary = "s3cr3t-canary"

// refusal fails unless an address that is refused says where, how to mend it,
// and nothing secret.
func refusal(t *testing.T, dsn string, err error) {
	t.Helper()
	for _, p := range driver.Problems(err) {
		if p.Code != driver.CodeInvalid || p.Field == "" || p.Hint == "" {
			t.Errorf("%q: %v does not say what to do", dsn, err)
		}
		if strings.Contains(p.Error(), canary) {
			t.Errorf("%q: its secret is in %v", dsn, err)
		}
	}
}

func TestAddressesOfBackends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dsn string
		ok        bool
	}{
		{"the engine that is found", "docker://", true},
		{"a socket", "docker:///var/run/docker.sock", true},
		{"a world", "memory://demo", true},
		{"nothing", "", false},
		{"no scheme", "docker", false},
		{"a backend that is not there", "podman://", false},
		{"no address at all", "://", false},
		{"an unknown parameter", "docker://?tsl=true", false},
		{"a parameter twice", "docker://?tls=true&tls=false", false},
		{"a parameter for a backend that has none", "memory://?image=x", false},
		{"a password", "docker://root:" + canary + "@h:2376", false},
		{"a password of one that takes none", "memory://x:" + canary + "@h", false},
		{"a token", "docker://h:2376?token=" + canary, false},
		{"a key in capitals", "docker://h:2376?API_KEY=" + canary, false},
		{"a password in an address that is none", "docker://u:" + canary + "@[::1", false},
		{"a password with a scheme that is not there", "podman://u:" + canary + "@h", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := estate.FromDSN(c.dsn)
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
			refusal(t, c.dsn, err)
		})
	}
}

// FuzzFromDSN: what is refused says so plainly, what is accepted opens, and a
// password in an address is never repeated.
func FuzzFromDSN(f *testing.F) {
	for _, s := range []string{"docker|h:2376?certs=/c", "memory|demo", "docker|/var/run/docker.sock", "docker|?storage_quota=1&image=a@sha256:00", "podman|"} {
		scheme, rest, _ := strings.Cut(s, "|")
		f.Add(scheme, rest, "token")
	}
	f.Fuzz(func(t *testing.T, scheme, rest, name string) {
		dsn := scheme + "://" + rest
		c, err := estate.FromDSN(dsn)
		refusal(t, dsn, err)
		if err == nil {
			e, err := estate.Open(t.Context(), c)
			if err != nil {
				t.Fatalf("%q: %v", dsn, err)
			}
			if _, err := e.Backend(t.Context(), ""); err != nil {
				t.Errorf("%q is accepted and not opened: %v", dsn, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, secret := range []string{scheme + "://u:" + canary + "@" + rest, scheme + "://h:1?token" + name + "=" + canary} {
			_, err := estate.FromDSN(secret)
			if err == nil && strings.Contains(secret, "@") && !strings.ContainsAny(scheme, "/?#") {
				t.Errorf("%q is accepted", secret)
			}
			if err != nil && !errors.Is(err, driver.CodeInvalid) {
				t.Errorf("%q: %v", secret, err)
			}
			refusal(t, secret, err)
		}
	})
}
