package policy

import (
	"bytes"
	"encoding/json"
	"maps"
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
		Labels:    map[string]string{"owner": "data", "team": "data"},
		Facts:     driver.Facts{Reaper: "nightly"},
	}
}

func goodResource() Resource {
	return FromSpec(driver.Info{Name: "memory"}, goodSpec(), driver.Plan{Isolation: driver.Container}, []string{"PYPI"})
}

// goodContainer is a container of somebody else's that no rule has anything to
// say about.
func goodContainer() Resource {
	return Resource{
		Image: ImageOf(goodImage), Isolation: new("user-kernel"), LifetimeSeconds: new(int64(600)),
		Resources: Caps{CPUMillis: new(int64(1000)), MemoryMiB: new(int64(512))}, Network: Network{Default: new("deny")},
		Env: []Env{{Name: "LANG", Value: "C.UTF-8"}}, Labels: map[string]string{"owner": "data"}, Restart: new("no"), ServiceToken: new(false),
		Process: Process{
			User: new("1000"), Privileged: new(false), NoNewPrivileges: new(true), ReadOnlyRoot: new(true), CapDrop: []string{"ALL"},
			Seccomp: new("default"), UnmaskedProc: new(false), Runtime: new("runsc"),
		},
	}
}

// goodOf is a resource of each kind that passes.
func goodOf(k Kind) Resource {
	switch k {
	case KindReaperSchedule:
		return Resource{Schedule: ScheduleOf(driver.Schedule{Name: "nightly", Interval: time.Minute})}
	case KindContainer:
		return goodContainer()
	case KindImage:
		return Resource{Image: ImageOf(goodImage)}
	case KindProvider:
		return Resource{Provider: Provider{Endpoint: new("unix:///var/run/docker.sock")}}
	case KindTemplate, KindSandbox, KindNetworkPolicy, KindGraph:
	}
	return goodResource()
}

// example is a configuration that shows what a rule says, as it stands beside
// the rule. What it does not mention is as in goodResource.
type example struct {
	Name      string            `json:"name"`
	Expect    string            `json:"expect"` // pass, warn, fail, unknown
	Path      string            `json:"path"`   // of what is found; of several, apart by blanks
	Kind      Kind              `json:"kind"`
	Resource  json.RawMessage   `json:"resource"`
	Image     *string           `json:"image"`
	Env       map[string]string `json:"env"`
	BuildArgs map[string]string `json:"build_args"`
	Files     map[string]string `json:"files"`
	Command   []string          `json:"command"`
	Nodes     []Node            `json:"nodes"` // of a graph
	Unknown   []string          `json:"unknown"`
	Params    map[string]any    `json:"params"`
	Firm      bool              `json:"firm"` // no waiver excuses it, whatever the rule says of others
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

func (ex example) input(t *testing.T, stage Stage) Input {
	t.Helper()
	r := goodOf(ex.Kind)
	if ex.Image != nil {
		r.Image = ImageOf(*ex.Image)
	}
	if len(ex.Resource) > 0 {
		if bytes.Contains(ex.Resource, []byte(`"egress"`)) {
			r.Network.Egress = nil // replaced as a whole
		}
		strictly(t, ex.Resource, &r)
	}
	for name, value := range ex.Env {
		r.Env = append(r.Env, Env{Name: name, Value: value})
	}
	for name, value := range ex.BuildArgs {
		r.BuildArgs = append(r.BuildArgs, Env{Name: name, Value: value})
	}
	for name, value := range ex.Files {
		r.Files = append(r.Files, Env{Name: name, Value: value})
	}
	r.Command = ex.Command
	if ex.Kind == "" {
		ex.Kind = KindTemplate
	}
	return Input{Kind: ex.Kind, Stage: stage, Resource: r, Unknown: ex.Unknown}
}

// judge asks the engine, the way that the example's kind is asked.
func (ex example) judge(t *testing.T, e *Engine, stage Stage) sandbox.Verdict {
	t.Helper()
	if ex.Kind != KindGraph {
		return judge(t, e, ex.input(t, stage))
	}
	v, err := e.JudgeGraph(t.Context(), Graph{Stage: stage, Nodes: ex.Nodes})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// values are the texts of the example that nobody may see again.
func (ex example) values() []string {
	return slices.Concat(slices.Collect(maps.Values(ex.Env)), slices.Collect(maps.Values(ex.BuildArgs)), slices.Collect(maps.Values(ex.Files)), ex.Command)
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
				e := load(t, Options{Params: ex.Params})
				for _, stage := range r.Stages {
					v := ex.judge(t, e, stage)
					if !slices.Contains(v.Rules, r.ID) {
						t.Fatalf("at %s, the rule did not run: %q", stage, v.Rules)
					}
					effect := effects[ex.Expect]
					if late := stage == StageApply || stage == StageRuntime; late && effect == sandbox.Unknown {
						effect = sandbox.Deny // what is unknown was asked again, and is unknown still
					}
					var got, want []string
					for _, f := range v.Findings {
						if f.Rule == r.ID {
							got = append(got, string(f.Effect)+" "+f.Path)
						}
					}
					for at := range strings.FieldsSeq(ex.Path) {
						want = append(want, string(effect)+" "+at)
					}
					if !slices.Equal(got, want) {
						t.Errorf("at %s, got %q, want %q", stage, got, want)
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
	for _, kind := range kinds[:len(kinds)-1] {
		for _, stage := range stages {
			if !asked(kind, stage) {
				continue
			}
			v := judge(t, e, Input{Kind: kind, Stage: stage, Resource: goodOf(kind)})
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
			v := ex.judge(t, e, r.Stages[0])
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range ex.values() {
				if len(value) > 3 && strings.Contains(string(raw), value) {
					t.Errorf("%s, %s: the verdict shows %q", r.ID, ex.Name, value)
				}
			}
		}
	}
}
