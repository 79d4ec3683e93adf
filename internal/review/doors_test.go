package review_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// probe is a rule that tells the resource as rules see it.
const probe = `# METADATA
# scope: package
# title: The resource
# description: What a rule sees.
# custom:
#   id: PROBE-ALL-001
#   severity: low
#   effect: warn
#   kinds: [template, sandbox, network_policy, reaper_schedule]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources: [{document: "none", section: "none"}]
#   remediation: None.
package custom.probe.all

warn contains {"path": place, "message": message} if message := sprintf("<<%s %v>>", [input.kind, input.resource])

place := "network" if input.kind == "network_policy" else := "backend"
`

// corpus are templates by what they are about, each well within the rules.
var corpus = map[string]string{
	"nothing but what is required": ``,
	"everything": `
  trust          = "trusted"
  trust_reason   = "our own tests"
  profile        = "strict"
  lifetime       = "900s"
  resources      = { cpu_millis = 500, memory_mib = 256, disk_mib = 64, pids = 32 }
  env            = { MODE = "test", LANG = "C" }
  secrets        = ["Z_TOKEN", "API_TOKEN"]
  labels         = { owner = "me", team = "a" }
  network_policy = {
    egress = [
      { cidr = "198.51.100.0/24", ports = [443] },
      { host = "pypi.org", ports = [443, 80], why = "packages" },
    ]
  }`,
	"names in another script, and ranges to mask": `
  network_policy = { egress = [{ cidr = "203.0.113.77/26" }, { host = "Bücher.Example." }, { host = "*.example.com" }] }`,
	"lifetimes in another spelling": `
  lifetime = "0h15m0s"`,
}

// Each configuration is judged by the provider in a plan, by policy check on
// the plan's file, and by the runtime from the manifest; what the rules see of
// it must be one and the same, byte by byte.
func TestAccTheThreeDoorsShowRulesTheSameResource(t *testing.T) {
	rules := files(t, map[string]string{"all.rego": probe})
	var config strings.Builder
	fmt.Fprintf(&config, "provider \"sandboxio\" {\n  memory {}\n  policy {\n    sources = { probe = %q }\n  }\n}\n", rules)
	names := map[string]string{}
	for about, more := range corpus {
		name := fmt.Sprintf("t%d", len(names))
		names[name] = about
		fmt.Fprintf(&config, `
resource "sandboxio_template" %q {
  name   = %q
  image  = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  reaper = "sweep"
%s
}

resource "sandboxio_sandbox" %q {
  template = sandboxio_template.%s.manifest
  lifetime = "60s"
  env      = { MORE = "y" }
  labels   = { run = "1" }
}
`, name, name, more, name, name)
	}
	config.WriteString(`
resource "sandboxio_network_policy" "p" {
  name   = "p"
  egress = [{ host = "PyPI.org", ports = [443] }, { cidr = "198.51.100.7/24" }]
}

resource "sandboxio_reaper_schedule" "sweep" {
  name     = "sweep"
  interval = "5m"
  max_age  = "1h"
}
`)
	w := acctest.NewProcessWorkspace(t, config.String())
	said := w.Must(t, "plan", "-json", "-input=false", "-out=tf.plan")
	shown := w.Must(t, "show", "-json", "tf.plan")
	w.Write(t, "plan.json", shown[strings.Index(shown, `{"format_version"`):])

	provider := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(said))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var event struct {
			Diagnostic struct {
				Address string
				Detail  string
			}
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if text, ok := between(event.Diagnostic.Detail); ok {
			provider[event.Diagnostic.Address] = text
		}
	}
	file := map[string]string{}
	r := reviewed(t, filepath.Join(w.Dir, "plan.json"), plan.Options{}, policy.Options{Sources: []policy.Source{{Name: "probe", Dir: rules}}}, review.Options{})
	for _, f := range r.Findings {
		if text, ok := between(f.Message); ok {
			file[f.Address] = text
		}
	}
	if len(file) != 2*len(corpus)+2 {
		t.Fatalf("%d resources in the file: %v", len(file), file)
	}
	for address, text := range file {
		if provider[address] != text {
			t.Errorf("%s\nprovider: %s\nfile:     %s", address, provider[address], text)
		}
	}

	// The runtime, with the manifest as an agent program has it.
	engine, err := policy.Load(t.Context(), policy.Options{Sources: []policy.Source{{Name: "probe", Dir: rules}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, manifest := range manifests(t, filepath.Join(w.Dir, "plan.json")) {
		tpl, err := sandbox.ParseTemplate([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		var seen asked
		rt := sandbox.New(memory.Open(memory.Options{}), sandbox.Options{Owner: "terraform", Guard: &seen})
		seen.policy = tpl.Policy
		spec := sandbox.Spec{Template: tpl, Detached: true, Lifetime: time.Minute, Env: map[string]string{"MORE": "y"}, Labels: map[string]string{"run": "1"}}
		if _, err := rt.Check(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		v, err := engine.Judge(t.Context(), policy.FromRequest(seen.request))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range v.Findings {
			if text, ok := between(f.Message); ok {
				if address := "sandboxio_sandbox." + name; file[address] != text {
					t.Errorf("%s (%s)\nruntime: %s\nfile:    %s", address, names[name], text, file[address])
				}
				delete(names, name)
			}
		}
	}
	if len(names) > 0 {
		t.Errorf("not judged by the runtime: %v", names)
	}
}

func between(s string) (string, bool) {
	_, rest, ok := strings.Cut(s, "<<")
	text, _, closed := strings.Cut(rest, ">>")
	return text, ok && closed
}

func manifests(t *testing.T, name string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Changes []struct {
			Type, Name string
			Change     struct{ After struct{ Manifest string } }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range p.Changes {
		if c.Type == "sandboxio_template" {
			out[c.Name] = c.Change.After.Manifest
		}
	}
	return out
}
