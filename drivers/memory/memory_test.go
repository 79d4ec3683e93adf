package memory_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/memory"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestFromURL(t *testing.T) {
	for _, c := range []struct {
		name, dsn, want string
		ok              bool
	}{
		{"no name", "memory://", "", true},
		{"a name", "memory://demo", "demo", true},
		{"another scheme", "docker://demo", "", false},
		{"an unknown parameter", "memory://demo?x=1", "", false},
		{"a question mark alone", "memory://demo?", "", false},
		{"a malformed query", "memory://demo?%zz", "", false},
		{"a path", "memory://demo/x", "", false},
		{"a port", "memory://demo:1", "", false},
		{"a user", "memory://me:secret@demo", "", false},
		{"a fragment", "memory://demo#x", "", false},
		{"no slashes", "memory:demo", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.dsn)
			if err != nil {
				t.Fatal(err)
			}
			got, err := memory.FromURL(u)
			if c.ok != (err == nil) || got.Name != c.want || !c.ok && !errors.Is(err, driver.CodeInvalid) {
				t.Errorf("FromURL(%q) = %+v, %v", c.dsn, got, err)
			}
		})
	}
}

func TestWorldsAreSharedByName(t *testing.T) {
	open := func(name string) driver.Backend {
		t.Helper()
		b, err := memory.Open(t.Context(), memory.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	spec := driver.Spec{Token: "shared", Facts: driver.Facts{Instance: "shared"}, Image: "memory:probe", Lifetime: driver.DefaultLifetime,
		Resources: driver.Resources{CPUMillis: 1000, MemoryMiB: 64, DiskMiB: 16, PIDs: 64}}
	s, err := open("a").Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill(t.Context()) })
	if _, err := open("a").Attach(t.Context(), s.Status().ID); err != nil {
		t.Errorf("the same name: %v", err)
	}
	if _, err := open("b").Attach(t.Context(), s.Status().ID); !errors.Is(err, driver.CodeNotFound) {
		t.Errorf("another name: %v", err)
	}
}
