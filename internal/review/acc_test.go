package review_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

const canary = "canary-5f1f0c2e9d"

var modules = map[string]string{
	"main.tf": `variable "password" {
  type      = string
  sensitive = true
  default   = "` + canary + `-variable"
}

provider "sandboxio" {
  default_backend = "memory"
  memory {}
}

resource "terraform_data" "host" {
  input = "later.example.com"
}

module "boxes" {
  source   = "./modules/box"
  for_each = { "a.b" = "20m", "c]" = "30m" }
  lifetime = each.value
  password = var.password
  later    = terraform_data.host.output
}

module "sweeper" {
  source = "./modules/sweeper"
}
`,
	"modules/box/main.tf": `variable "lifetime" {}
variable "password" {}
variable "later" {}

module "network" {
  source = "../network"
  later  = var.later
}

resource "sandboxio_template" "box" {
  count    = 1
  name     = "box"
  image    = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  lifetime = var.lifetime # called
  reaper   = "sweep"
  env = {
    MODE    = "test"
    GREETER = "` + canary + `-literal"
    SECRET_NAME = var.password
  }
  labels = {
    team = var.password
  }
  network_policy = {
    egress = [
      { host = "pypi.org", ports = [443] },
      { cidr = "198.51.100.0/24", ports = [8443] },
    ]
  }
}
`,
	"modules/network/main.tf": `variable "later" {}

resource "sandboxio_network_policy" "net" {
  name = "net"
  egress = [
    { host = var.later, ports = [443] },
    { host = "example.com", ports = [8443] },
  ]
}
`,
	"modules/sweeper/main.tf": `resource "terraform_data" "other" {}

resource "terraform_data" "another" {}
`,
}

// Show 3: three modules, for_each, sensitive values and unknowns, planned by
// the real terraform with the real provider.
func TestAccAPlanIsReviewedAtTheLinesWhereItWasWritten(t *testing.T) {
	w := acctest.NewProcessWorkspace(t, modules["main.tf"])
	for name, text := range modules {
		if err := os.MkdirAll(filepath.Join(w.Dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		w.Write(t, name, text)
	}
	w.Write(t, "modules/box/versions.tf", string(w.Read(t, "versions.tf")))
	w.Write(t, "modules/network/versions.tf", string(w.Read(t, "versions.tf")))
	w.Must(t, "get", "-no-color")
	w.Must(t, "plan", "-no-color", "-input=false", "-out=tf.plan")
	shown := w.Must(t, "show", "-json", "tf.plan")
	if strings.Count(shown, canary) < 4 {
		t.Fatal("terraform does not show the values, so nothing would be proven")
	}
	if i := strings.Index(shown, `{"format_version"`); i > 0 {
		shown = shown[i:] // a warning about dev_overrides is before it
	}
	w.Write(t, "plan.json", shown)

	for _, kv := range w.Env {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
	t.Setenv("PATH", filepath.Dir(os.Getenv("TF_ACC_TERRAFORM_PATH"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	rules := policy.Options{Params: map[string]any{"max_lifetime_seconds": 60, "max_lifetime_trusted_seconds": 60, "denied_ports": denied(t)}}

	binary := reviewed(t, filepath.Join(w.Dir, "tf.plan"), plan.Options{Source: w.Dir}, rules, review.Options{Excerpts: true})
	fromJSON := reviewed(t, filepath.Join(w.Dir, "plan.json"), plan.Options{Source: w.Dir}, rules, review.Options{Excerpts: true})
	bare := reviewed(t, filepath.Join(w.Dir, "plan.json"), plan.Options{}, rules, review.Options{})
	if d := cmp.Diff(fromJSON.Findings, binary.Findings); d != "" {
		t.Errorf("the plan file and its JSON are not judged alike: %s", d)
	}
	if len(bare.Findings) != len(binary.Findings) || bare.Decision != binary.Decision {
		t.Errorf("without sources there are %d findings, with them %d", len(bare.Findings), len(binary.Findings))
	}

	got := map[string]bool{}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Level     string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
					LogicalLocations []struct{ FullyQualifiedName string }
				}
				RelatedLocations []struct {
					PhysicalLocation struct{ Region struct{ StartLine int } }
				}
			}
		}
	}
	all := formats(t, binary)
	if err := json.Unmarshal([]byte(all["sarif"]), &log); err != nil {
		t.Fatal(err)
	}
	for _, r := range log.Runs[0].Results {
		at := r.Locations[0]
		uri, ok := strings.CutPrefix(strings.TrimPrefix(at.PhysicalLocation.ArtifactLocation.URI, "file://"), filepath.ToSlash(w.Dir)+"/")
		if !ok && uri != "" {
			t.Errorf("%s is outside of the configuration", uri)
		}
		calls := ""
		for _, c := range r.RelatedLocations {
			calls += fmt.Sprintf(" <- %d", c.PhysicalLocation.Region.StartLine)
		}
		got[fmt.Sprintf("%s %s %s:%d:%d%s %s", r.Level, r.RuleID, uri, at.PhysicalLocation.Region.StartLine, at.PhysicalLocation.Region.StartColumn, calls, at.LogicalLocations[0].FullyQualifiedName)] = true
	}
	for _, want := range []string{
		`error SBX-RES-001 modules/box/main.tf:14:3 <- 16 module.boxes["a.b"].sandboxio_template.box[0].lifetime`,
		`error SBX-RES-001 modules/box/main.tf:14:3 <- 16 module.boxes["c]"].sandboxio_template.box[0].lifetime`,
		`error SBX-NET-010 modules/box/main.tf:27:35 <- 16 module.boxes["c]"].sandboxio_template.box[0].network_policy.egress[1].ports`,
		`error SBX-NET-010 modules/network/main.tf:7:29 <- 16 <- 5 module.boxes["a.b"].module.network.sandboxio_network_policy.net.egress[1].ports`,
		`note SBX-NET-003 modules/network/main.tf:6:7 <- 16 <- 5 module.boxes["a.b"].module.network.sandboxio_network_policy.net.egress[0].host`,
	} {
		if !got[want] {
			t.Errorf("not found: %s", want)
		}
	}
	if t.Failed() {
		lines := []string{}
		for g := range got {
			lines = append(lines, g)
		}
		slices.Sort(lines)
		t.Log(strings.Join(lines, "\n"))
	}
	checkSARIF(t, all["sarif"])
	for _, r := range []*review.Report{binary, fromJSON, bare} {
		for name, text := range formats(t, r) {
			if strings.Contains(text, canary) {
				t.Errorf("%s shows a sensitive value:\n%s", name, grep(text, canary))
			}
		}
	}

	// The directory alone: literals, and what cannot be known.
	dir := reviewed(t, w.Dir, plan.Options{}, rules, review.Options{Excerpts: true})
	if dir.Decision != sandbox.Deny || dir.Seen.Judged != 2 {
		t.Errorf("%s: %d judged", dir.Decision, dir.Seen.Judged)
	}
	for name, text := range formats(t, dir) {
		if strings.Contains(text, canary) {
			t.Errorf("%s of the directory shows %s", name, grep(text, canary))
		}
	}
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Error("the plan was not shown by the terraform on PATH")
	}
}

func grep(text, what string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, what) {
			return l
		}
	}
	return ""
}

// denied are the ports that are denied anyway, and one more.
func denied(t *testing.T) []any {
	t.Helper()
	e, err := policy.Load(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Rules() {
		for _, p := range r.Params {
			if p.Name == "denied_ports" {
				ports, _ := p.Default.([]any)
				return append(slices.Clone(ports), 8443)
			}
		}
	}
	t.Fatal("there is no parameter denied_ports")
	return nil
}
