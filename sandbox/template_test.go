package sandbox

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const pinned = "ghcr.io/acme/py@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func full() Template {
	return Template{
		Name: "agent", Backend: "docker", Image: pinned, Isolation: Container, Trust: Trusted("our own code"),
		Lifetime: 90 * time.Second, Resources: Resources{CPUMillis: 500, MemoryMiB: 128, DiskMiB: 64, PIDs: 64},
		Network: Network{Egress: []Rule{
			{Host: "API.Example.com.", Why: "the API"},
			{Prefix: netip.MustParsePrefix("203.0.113.77/24"), Ports: []uint16{443}},
		}},
		Env: map[string]string{"MODE": "a=b\n<&>"}, Secrets: []string{"TOKEN", "KEY", "TOKEN"}, Labels: map[string]string{"team": "search"},
		Reaper: "nightly", Policy: "sha256:" + strings.Repeat("b", 64),
	}
}

func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	data, err := full().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTemplate(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := full().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, *got, cmp.AllowUnexported(Trust{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	again, err := got.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(data) {
		t.Errorf("a second manifest differs:\n%s\n%s", data, again)
	}
}

func TestDigestIsOfTheMeaning(t *testing.T) {
	t.Parallel()
	base, err := full().Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Template)
		same   bool
	}{
		{"rules in another order", func(t *Template) { n := t.Network.Egress; n[0], n[1] = n[1], n[0] }, true},
		{"a host in another case", func(t *Template) { t.Network.Egress[0].Host = "api.example.com" }, true},
		{"an unmasked prefix", func(t *Template) { t.Network.Egress[1].Prefix = netip.MustParsePrefix("203.0.113.0/24") }, true},
		{"secrets in another order", func(t *Template) { t.Secrets = []string{"KEY", "TOKEN"} }, true},
		{"another port", func(t *Template) { t.Network.Egress[1].Ports = []uint16{8443} }, false},
		{"another lifetime", func(t *Template) { t.Lifetime++ }, false},
		{"another trust", func(t *Template) { t.Trust = Untrusted }, false},
		{"no reaper", func(t *Template) { t.Reaper = "" }, false},
	} {
		tm := full()
		c.change(&tm)
		got, err := tm.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if (got == base) != c.same {
			t.Errorf("%s: same digest = %v, want %v", c.name, got == base, c.same)
		}
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	t.Parallel()
	whole, err := full().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	const min = `"schema":"sandboxio.template/v1","name":"a","image":"` + pinned + `"`
	for _, c := range []struct{ name, in, field string }{
		{"not JSON", `{`, "manifest"},
		{"an array", `[]`, ""},
		{"trailing text", `{` + min + `} {}`, "manifest"},
		{"an unknown schema", `{"schema":"v9","name":"a"}`, "schema"},
		{"an unknown field", `{` + min + `,"network_policy":{}}`, "manifest"},
		{"a misspelt case", `{` + min + `,"Network":{}}`, "Network"},
		{"a misspelt case inside", `{` + min + `,"network":{"Egress":[]}}`, "network.Egress"},
		{"a field twice", `{` + min + `,"lifetime_seconds":5,"lifetime_seconds":50000}`, "lifetime_seconds"},
		{"a field twice inside", `{` + min + `,"network":{"egress":[{"host":"a.example","host":"b.example"}]}}`, "network.egress.host"},
		{"a changed digest", strings.Replace(string(whole), `"lifetime_seconds":90`, `"lifetime_seconds":91`, 1), "digest"},
		{"a bad name", `{"schema":"sandboxio.template/v1","name":"A b"}`, "name"},
		{"a bad image", `{"schema":"sandboxio.template/v1","name":"a","image":"https://x/y"}`, "image"},
		{"a bad isolation", `{` + min + `,"isolation":"vm"}`, "isolation"},
		{"trust without reason", `{` + min + `,"trust":"trusted"}`, "trust"},
		{"a negative lifetime", `{` + min + `,"lifetime_seconds":-1}`, "lifetime"},
		{"a lifetime that overflows", `{` + min + `,"lifetime_seconds":9223372036854775807}`, "lifetime"},
		{"a text for a number", `{` + min + `,"lifetime_seconds":"5m"}`, "lifetime_seconds"},
		{"a fraction", `{` + min + `,"resources":{"cpu_millis":0.5}}`, "resources.cpu_millis"},
		{"a negative cap", `{` + min + `,"resources":{"pids":-1}}`, "resources.pids"},
		{"a bad CIDR", `{` + min + `,"network":{"egress":[{"cidr":"10.0.0.0/33"}]}}`, "network.egress[0].cidr"},
		{"a bad host", `{` + min + `,"network":{"egress":[{"host":"*"}]}}`, "network.egress[0].host"},
		{"host and CIDR", `{` + min + `,"network":{"egress":[{"host":"a.example","cidr":"10.0.0.0/8"}]}}`, "network.egress[0]"},
		{"port 0", `{` + min + `,"network":{"egress":[{"host":"a.example","ports":[0]}]}}`, "network.egress[0].ports"},
		{"a reserved label", `{` + min + `,"labels":{"sandboxio.managed":"true"}}`, `labels["sandboxio.managed"]`},
		{"a reserved variable", `{` + min + `,"env":{"https_proxy":"x"}}`, `env["https_proxy"]`},
		{"a secret in env", `{` + min + `,"env":{"TOKEN":"x"},"secrets":["TOKEN"]}`, "secrets[0]"},
		{"nested as deeply as it is long", strings.Repeat("[", maxManifestSize), "manifest"},
		{"too long", strings.Repeat(" ", maxManifestSize+1), "manifest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseTemplate([]byte(c.in))
			if !errors.Is(err, CodeInvalid) {
				t.Fatalf("got %v, want invalid", err)
			}
			if strings.HasPrefix(c.name, "nested") && !strings.Contains(err.Error(), "nested too deeply") {
				t.Errorf("it was read to its end: %v", err)
			}
			p := driver.Problems(err)
			if c.field != "" && p[0].Field != c.field {
				t.Errorf("field %q, want %q (%v)", p[0].Field, c.field, err)
			}
			for _, e := range p {
				if e.Hint == "" {
					t.Errorf("no fix: %v", e)
				}
			}
		})
	}
}

func FuzzParseTemplate(f *testing.F) {
	whole, err := full().Manifest()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"schema":"sandboxio.template/v1","name":"a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tm, err := ParseTemplate(data)
		if err != nil {
			if !errors.Is(err, CodeInvalid) {
				t.Fatalf("not invalid: %v", err)
			}
			return
		}
		a, err := tm.Manifest()
		if err != nil {
			t.Fatalf("accepted, but has no manifest: %v", err)
		}
		again, err := ParseTemplate(a)
		if err != nil {
			t.Fatalf("its own manifest is refused: %v\n%s", err, a)
		}
		if b, err := again.Manifest(); err != nil || string(a) != string(b) {
			t.Fatalf("not stable: %v\n%s\n%s", err, a, b)
		}
	})
}
