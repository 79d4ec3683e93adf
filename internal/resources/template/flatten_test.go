package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestAnImportKeepsEveryWordOfTheManifest(t *testing.T) {
	t.Parallel()
	full := sandbox.Template{
		Name: "t", Backend: "memory", Image: "example.com/a@sha256:" + strings.Repeat("ab", 32), Isolation: sandbox.MicroVM, Trust: sandbox.Untrusted, MultiTenant: true,
		Profile: sandbox.Compat, Lifetime: 90e9, Resources: sandbox.Resources{CPUMillis: 100, MemoryMiB: 64, DiskMiB: 8, PIDs: 40},
		Network: sandbox.Network{Egress: []sandbox.Rule{{Host: "*.example.com", Ports: []uint16{443}, Why: "w"}}, Expose: []uint16{80}, Learn: true},
		Env:     map[string]string{"A": "b"}, Secrets: []string{"S"}, Labels: map[string]string{"l": "m"}, Reaper: "r", Policy: "sha256:" + strings.Repeat("cd", 32),
	}
	for name, tpl := range map[string]sandbox.Template{"everything set": full, "nothing set": {Name: "t"}} {
		manifest, err := tpl.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		m, err := flatten(string(manifest))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, diags := m.expand(t.Context())
		if diags.HasError() || !e.known() {
			t.Fatalf("%s: %v, %v", name, diags, e)
		}
		e.template.Policy = tpl.Policy // computed, not configured
		again, err := e.template.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(manifest), string(again)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzFlatten(f *testing.F) {
	for _, tpl := range []sandbox.Template{{Name: "t"}, {Name: "u", Reaper: "r", Env: map[string]string{"A": "b"}}} {
		manifest, err := tpl.Manifest()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(manifest))
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		m, err := flatten(manifest)
		if err != nil {
			return
		}
		if e, diags := m.expand(t.Context()); diags.HasError() || !e.known() {
			t.Errorf("%q is read as a manifest and cannot be written: %v, %v", manifest, diags, e)
		}
	})
}
