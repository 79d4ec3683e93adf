package policy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const goodImage = "ghcr.io/acme/py@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// goodSpec is an order that no rule has anything to say about.
func goodSpec() driver.Spec {
	return driver.Spec{
		Image: goodImage, Isolation: driver.Container, Trust: driver.Trusted("built from our own repository"), Lifetime: 300 * time.Second,
		Resources: driver.Resources{CPUMillis: 1000, MemoryMiB: 512, DiskMiB: 256, PIDs: 256},
		Network:   driver.Network{Egress: []driver.Rule{{Host: "pypi.org", Ports: []uint16{443}, Why: "packages"}}},
		Env:       map[string]string{"LANG": "C.UTF-8"},
		Labels:    map[string]string{"team": "data"},
		Facts:     driver.Facts{Reaper: "nightly"},
	}
}

func goodResource() Resource {
	return FromSpec(driver.Info{Name: "memory"}, goodSpec(), driver.Plan{Isolation: driver.Container}, []string{"PYPI"})
}

// example is a configuration that shows what a rule says, as it stands beside
// the rule. What it does not mention is as in goodResource.
type example struct {
	Name     string            `json:"name"`
	Expect   string            `json:"expect"` // pass, warn, fail, unknown
	Path     string            `json:"path"`
	Kind     Kind              `json:"kind"`
	Resource json.RawMessage   `json:"resource"`
	Image    *string           `json:"image"`
	Env      map[string]string `json:"env"`
	Unknown  []string          `json:"unknown"`
	Params   map[string]any    `json:"params"`
}

func readExamples(t *testing.T, r *rule) []example {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rulesDir, filepath.Dir(r.file), "examples.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	strictly(t, raw, &out)
	return out
}

func strictly(t *testing.T, raw []byte, to any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatal(err)
	}
}

func (ex example) input(t *testing.T) Input {
	t.Helper()
	r := goodResource()
	if ex.Kind == KindReaperSchedule {
		r = Resource{Schedule: ScheduleOf(driver.Schedule{Name: "nightly", Interval: time.Minute})}
	}
	if len(ex.Resource) > 0 {
		if bytes.Contains(ex.Resource, []byte(`"egress"`)) {
			r.Network.Egress = nil // replaced as a whole
		}
		strictly(t, ex.Resource, &r)
	}
	if ex.Image != nil {
		r.Image = ImageOf(*ex.Image)
	}
	for name, value := range ex.Env {
		r.Env = append(r.Env, Env{Name: name, Value: value})
	}
	if ex.Kind == "" {
		ex.Kind = KindTemplate
	}
	return Input{Kind: ex.Kind, Stage: StagePlan, Resource: r, Unknown: ex.Unknown}
}

func load(t testing.TB, opts Options) *Engine {
	t.Helper()
	e, err := Load(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func judge(t testing.TB, e *Engine, in Input) sandbox.Verdict {
	t.Helper()
	v, err := e.Judge(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEveryExampleIsJudgedAsItSays(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]sandbox.Decision{"fail": sandbox.Deny, "warn": sandbox.Warn, "unknown": sandbox.Unknown}
	for _, r := range own.rules {
		seen := map[string]bool{}
		for _, ex := range readExamples(t, r) {
			seen[ex.Expect] = true
			t.Run(r.ID+"/"+ex.Name, func(t *testing.T) {
				v := judge(t, load(t, Options{Params: ex.Params}), ex.input(t))
				if !slices.Contains(v.Rules, r.ID) {
					t.Fatalf("the rule did not run: %q", v.Rules)
				}
				var got []string
				for _, f := range v.Findings {
					if f.Rule == r.ID {
						got = append(got, string(f.Effect)+" "+f.Path)
					}
				}
				want := []string(nil)
				if ex.Expect != "pass" {
					want = []string{string(effects[ex.Expect]) + " " + ex.Path}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}

				// What is unknown is asked again; unknown then denies.
				if ex.Expect == "unknown" {
					in := ex.input(t)
					in.Stage = StageApply
					if v := judge(t, load(t, Options{}), in); v.Decision != sandbox.Deny {
						t.Errorf("at apply, the decision is %q", v.Decision)
					}
				}
			})
		}
		bad := "fail"
		if r.Effect == "warn" {
			bad = "warn"
		}
		for _, expect := range []string{"pass", bad, "unknown"} {
			if !seen[expect] {
				t.Errorf("%s has no example of %s", r.ID, expect)
			}
		}
	}
}

func TestAGoodConfigurationPassesWithoutAWord(t *testing.T) {
	e := load(t, Options{})
	for _, kind := range []Kind{KindTemplate, KindSandbox, KindNetworkPolicy} {
		for _, stage := range stages {
			v := judge(t, e, Input{Kind: kind, Stage: stage, Resource: goodResource()})
			if v.Decision != sandbox.Allow || len(v.Findings) > 0 {
				t.Errorf("%s at %s: %s %v", kind, stage, v.Decision, v.Findings)
			}
		}
	}
}

func TestNoExampleShowsAValue(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	e := load(t, Options{})
	for _, r := range own.rules {
		for _, ex := range readExamples(t, r) {
			v := judge(t, e, ex.input(t))
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range ex.Env {
				if len(value) > 3 && strings.Contains(string(raw), value) {
					t.Errorf("%s, %s: the verdict shows %q", r.ID, ex.Name, value)
				}
			}
		}
	}
}
