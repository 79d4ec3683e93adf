package review_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// What is found of settings, of waivers and of what has no text is at a line
// of a file all the same, as GitHub wants it.
func TestEveryResultHasAPlace(t *testing.T) {
	t.Parallel()
	const waivers = `# ours
waivers:
  - id: OLD
    rule: SBX-RES-005
    target: { name: box }
    path: resources.pids
    value: 2000
    reason: it was so until the end of last year
    owner: team-a
    expires: 2020-01-01
  - id: IDLE
    rule: SBX-RES-005
    target: { name: nobody }
    path: resources.pids
    value: 2000
    reason: it was so until the end of last year
    owner: team-a
    expires: 2020-01-01
`
	const changes = `{"format_version":"1.2","planned_values":{},"resource_changes":[
{"address":"sandboxio_template.box","mode":"managed","type":"sandboxio_template","name":"box","change":{"actions":["create"],"before":null,
 "after":{"name":"box","backend":"memory","resources":{"pids":2000}},"after_unknown":{"reaper":true},"after_sensitive":{}}},
{"address":"helm_release.r","mode":"managed","type":"helm_release","name":"r","change":{"actions":["create"],"after":{}}}],
"configuration":{"provider_config":{"sandboxio":{"name":"sandboxio","expressions":{"policy":[{"mode":{"constant_value":"advise"},"sources":{"references":["path.module"]}}]}}}}}`
	dir := files(t, map[string]string{
		"plan.json": changes, "rules/waivers.yaml": waivers,
		"tf/b.tf": "resource \"sandboxio_template\" \"box\" {\n  name = \"box\"\n  backend = \"memory\"\n  resources = { pids = 2000 }\n}\n",
		"tf/a.tf": "provider \"sandboxio\" {\n  policy {\n    mode = \"advise\"\n  }\n}\nmodule \"far\" { source = \"git::https://example.com/x.git\" }\n",
	})
	rules := policy.Options{
		Sources: []policy.Source{{Name: "acme", Dir: filepath.Join(dir, "rules")}}, Mode: policy.Advise, Params: map[string]any{"max_pids": 100000},
	}
	for name, o := range map[string]plan.Options{"plan.json": {}, "tf": {}, "./plan.json": {Source: filepath.Join(dir, "tf")}} {
		r := reviewed(t, filepath.Join(dir, name), o, rules, review.Options{})
		all := formats(t, r)
		checkSARIF(t, all["sarif"])
		seen := map[string]plan.Place{}
		for _, f := range r.Findings {
			seen[f.Rule] = f.Place
			seen[f.Rule+" "+f.Path] = f.Place
		}
		for _, id := range []string{"SBX-POL-001", "SBX-WVR-001", "SBX-WVR-002", "SBX-POL-002"} {
			if _, ok := seen[id]; !ok {
				t.Errorf("%s: there is no %s", name, id)
			}
		}
		for path, line := range map[string]int{`SBX-WVR-001 policy.waivers["OLD"]`: 3, `SBX-WVR-002 policy.waivers["IDLE"]`: 11} {
			if p := seen[path]; p.Line != line || !strings.HasSuffix(p.File, "rules/waivers.yaml") {
				t.Errorf("%s: %s is at %+v", name, path, p)
			}
		}
		if !strings.Contains(all["text"], "rules/waivers.yaml:3:1") {
			t.Errorf("%s: the text does not say where the waiver stands:\n%s", name, all["text"])
		}
		want := "tf/a.tf"
		if name == "plan.json" {
			want = "plan.json"
		}
		if !strings.HasSuffix(r.Whole.File, want) || r.Whole.Line != 1 {
			t.Errorf("%s: the whole is at %+v", name, r.Whole)
		}
	}
}

// What denies is known; what is not decided, waived or broken is not.
func TestABaselineHidesNothingThatNobodyLookedAt(t *testing.T) {
	t.Parallel()
	all := sample()
	known, err := review.ReadBaseline(strings.NewReader(formats(t, all)["json"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Findings {
		if want := f.Effect == sandbox.Deny || f.Effect == sandbox.Warn; known[f.Fingerprint] != want {
			t.Errorf("%s: in the baseline: %v", f.Effect, known[f.Fingerprint])
		}
	}
	later := "variable \"egress\" {}\nresource \"sandboxio_network_policy\" \"p\" {\n  name   = \"p\"\n  egress = var.egress\n}\n"
	dir := files(t, map[string]string{"main.tf": later})
	first := reviewed(t, dir, plan.Options{}, policy.Options{}, review.Options{})
	prints := map[string]bool{}
	for _, f := range first.Findings {
		prints[f.Fingerprint] = true
	}
	again := reviewed(t, dir, plan.Options{}, policy.Options{}, review.Options{Baseline: prints})
	if n := again.Count(sandbox.Unknown); n == 0 || again.Decision != sandbox.Unknown {
		t.Errorf("%s, %d not decided", again.Decision, n)
	}
}

func TestARuleIsToldOncePerTemplate(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"main.tf": `variable "r" {}
resource "sandboxio_template" "t" {
  name    = "t"
  backend = "memory"
  reaper  = var.r
}
`})
	sweep := files(t, map[string]string{"main.tf": `resource "sandboxio_reaper_schedule" "s" {
  name     = "sweep"
  backend  = "memory"
  interval = "5m"
}
resource "sandboxio_template" "t" {
  name    = "t"
  backend = "memory"
  reaper  = sandboxio_reaper_schedule.s.name
}
`})
	for _, f := range reviewed(t, sweep, plan.Options{}, policy.Options{}, review.Options{}).Findings {
		if f.Rule == "SBX-LIF-001" {
			t.Errorf("a schedule in the same directory covers it: %s", f.Message)
		}
	}
	n := 0
	for _, f := range reviewed(t, dir, plan.Options{}, policy.Options{}, review.Options{}).Findings {
		if f.Rule == "SBX-LIF-001" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("SBX-LIF-001 is told %d times", n)
	}
}
