package policy

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// setFloor has the environment name a floor with these files.
func setFloor(t *testing.T, files map[string]string) (file, private string) {
	t.Helper()
	private, public := keys(t, algEdDSA)
	file = filepath.Join(t.TempDir(), "floor.tar.gz")
	if err := os.WriteFile(file, signed(t, private, files), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(FloorVariable, file)
	t.Setenv(FloorKeyVariable, public)
	return file, private
}

func waiversFile(t *testing.T, waivers ...Waiver) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"waivers": waivers})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheFloorHoldsWhateverTheConfigurationSays(t *testing.T) {
	files := teamFiles()
	files["settings.yaml"] = "params:\n  max_pids: 512\n  max_memory_mib: 65536\n"
	setFloor(t, files)
	mine := oneRule(t, teamRule)
	mine.Name = "mine"
	for name, body := range map[string]string{"rule.rego": customRule("MINE-001", "custom.mine.teams", teamRule)} {
		body = strings.ReplaceAll(body, "acme_teams", "my_teams")
		if err := os.WriteFile(filepath.Join(mine.Dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
	in.Resource.Labels["team"] = "ops"
	pids := func(n int64) func(*Input) { return func(in *Input) { in.Resource.Resources.PIDs = &n } }
	for _, tc := range []struct {
		name   string
		opts   Options
		change func(*Input)
		want   []string
	}{
		{"its rules judge", Options{}, nil, []string{`ACME-001 deny labels["team"]`}},
		{"its parameters are tighter than the rules' own", Options{}, pids(600), []string{"SBX-RES-005 deny resources.pids", `ACME-001 deny labels["team"]`}},
		{"its parameters may be looser than the rules' own", Options{}, func(in *Input) { in.Resource.Resources.MemoryMiB = new(int64(32768)) }, []string{`ACME-001 deny labels["team"]`}},
		{"the configuration may be tighter", Options{Params: map[string]any{"max_pids": 64}}, pids(100), []string{"SBX-RES-005 deny resources.pids", `ACME-001 deny labels["team"]`}},
		{
			"a looser parameter denies and has no effect",
			Options{Params: map[string]any{"max_pids": 700}},
			pids(600),
			[]string{"SBX-RES-005 deny resources.pids", `ACME-001 deny labels["team"]`, "SBX-POL-001 deny policy.params.max_pids"},
		},
		{
			"a mode that only warns denies and has no effect",
			Options{Mode: Advise},
			nil,
			[]string{`ACME-001 deny labels["team"]`, "SBX-POL-001 deny policy.mode"},
		},
		{
			"a waiver of a built-in rule denies and has no effect",
			Options{Waivers: []Waiver{goodWaiver()}},
			pids(2000),
			[]string{"SBX-RES-005 deny resources.pids", `ACME-001 deny labels["team"]`, `SBX-POL-001 deny policy.waivers["W-1"]`},
		},
		{
			"a waiver of something else denies too",
			Options{Waivers: []Waiver{goodWaiver(func(w *Waiver) { w.Target.Name = "node" })}},
			nil,
			[]string{`ACME-001 deny labels["team"]`, `SBX-POL-001 deny policy.waivers["W-1"]`},
		},
		{
			"a waiver in a directory of the configuration's denies and has no effect",
			Options{Sources: []Source{source(t, map[string]string{"waivers.json": waiversFile(t, goodWaiver(func(w *Waiver) {
				w.Rule, w.Path, w.Value = "ACME-001", `labels["team"]`, new("ops")
			}))}).as("exempt")}},
			nil,
			[]string{`ACME-001 deny labels["team"]`, `SBX-POL-001 deny policy.waivers["W-1"]`},
		},
		{
			"a waiver of the configuration's own rule is its own affair",
			Options{Sources: []Source{mine}, Waivers: []Waiver{goodWaiver(func(w *Waiver) { w.Rule, w.Path, w.Value = "MINE-001", `labels["team"]`, new("ops") })}},
			nil,
			[]string{`ACME-001 deny labels["team"]`, `SBX-POL-001 warn policy.waivers["W-1"]`, `MINE-001 waived labels["team"]`},
		},
		{
			"a looser parameter of the configuration's own rule is its own affair",
			Options{Sources: []Source{mine}, Params: map[string]any{"my_teams": []string{"data", "web", "ops"}}},
			nil,
			[]string{`ACME-001 deny labels["team"]`, "SBX-POL-001 warn policy.params.my_teams"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.Now = clock
			in := in
			if tc.change != nil {
				tc.change(&in)
			}
			for _, stage := range []Stage{StagePlan, StageFile, StageApply} {
				in.Stage = stage
				v := judge(t, load(t, tc.opts), in)
				if v.Decision != sandbox.Deny || !slices.Equal(said(v), tc.want) {
					t.Errorf("%s: %s %q", stage, v.Decision, said(v))
				}
			}
			req := sandbox.Request{Backend: driver.Info{Name: "memory"}, Spec: goodSpec(), Plan: driver.Plan{Isolation: driver.Container}}
			req.Spec.Labels = in.Resource.Labels
			if v, err := load(t, tc.opts).Guard().Judge(t.Context(), req); err != nil || v.Decision != sandbox.Deny {
				t.Errorf("a program: %v %s", err, v.Decision)
			}
		})
	}
}

// as is s under another name.
func (s Source) as(name string) Source {
	s.Name = name
	return s
}

func TestTheFloorMayLetAConfigurationOnlyWarn(t *testing.T) {
	files := teamFiles()
	files["settings.json"] = `{"mode": "advise"}`
	setFloor(t, files)
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
	in.Resource.Labels["team"] = "ops"
	if v := judge(t, load(t, Options{}), in); v.Decision != sandbox.Deny {
		t.Errorf("by default: %s %q", v.Decision, said(v))
	}
	if v := judge(t, load(t, Options{Mode: Advise}), in); v.Decision != sandbox.Warn || len(v.Findings) != 2 {
		t.Errorf("in mode advise: %s %q", v.Decision, said(v))
	}
	// What the floor forbids is denied in every mode.
	v := judge(t, load(t, Options{Mode: Advise, Params: map[string]any{"max_pids": 1 << 20}}), in)
	if v.Decision != sandbox.Deny || !slices.Contains(said(v), "SBX-POL-001 deny policy.params.max_pids") {
		t.Errorf("looser in mode advise: %s %q", v.Decision, said(v))
	}
}

func TestTheFloorGrantsWaivers(t *testing.T) {
	setFloor(t, map[string]string{"waivers.json": waiversFile(t, goodWaiver(func(w *Waiver) { w.Expires = "2027-02-20" })), "settings.yaml": "{}\n"})
	v := judge(t, load(t, Options{Now: clock}), forking())
	if v.Decision != sandbox.Allow || len(v.Findings) != 1 || v.Findings[0].Waiver.Origin != byFloor {
		t.Errorf("%s %+v", v.Decision, v.Findings)
	}
	// Nor can a configuration take an id of the floor's, to put another there.
	if _, err := Load(t.Context(), Options{Waivers: []Waiver{goodWaiver()}}); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestAFloorThatCannotBeUsedIsAnError(t *testing.T) {
	file, private := setFloor(t, teamFiles())
	_, other := keys(t, algEdDSA)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(t *testing.T, body []byte) string {
		t.Helper()
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	names, files := unpack(t, raw)
	unsigned := pack(t, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "/.signatures.json" }), files, nil)
	for _, tc := range []struct {
		name, field string
		env         map[string]string
	}{
		{"that is not there", FloorVariable, map[string]string{FloorVariable: filepath.Join(t.TempDir(), "none")}},
		{"that is unsigned", FloorVariable, map[string]string{FloorVariable: put(t, unsigned)}},
		{"that is cut short", FloorVariable, map[string]string{FloorVariable: put(t, raw[:100])}},
		{"that another key signed", FloorVariable, map[string]string{FloorKeyVariable: other}},
		{"without a key", FloorKeyVariable, map[string]string{FloorKeyVariable: ""}},
		{"whose key is not there", FloorKeyVariable, map[string]string{FloorKeyVariable: filepath.Join(t.TempDir(), "none")}},
		{"whose key is not in PEM", FloorKeyVariable, map[string]string{FloorKeyVariable: "MC4CAQAwBQYDK2VwBCIEIBEGIN PRIVATE"}},
		{"whose key is a pipe", FloorKeyVariable, map[string]string{FloorKeyVariable: os.DevNull}},
		{"that is no regular file", FloorVariable, map[string]string{FloorVariable: os.DevNull}},
		{"whose key is a private one", FloorVariable, map[string]string{FloorKeyVariable: private}},
		{"whose key is empty", FloorVariable, map[string]string{FloorKeyVariable: put(t, nil)}},
		{"that is rolled back", FloorVariable, map[string]string{FloorRevisionVariable: "8"}},
		{"whose least revision is none", FloorRevisionVariable, map[string]string{FloorRevisionVariable: "latest"}},
		{"that is forgotten, but for its key", FloorVariable, map[string]string{FloorVariable: ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			e, err := Load(t.Context(), Options{})
			problems := driver.Problems(err)
			if e != nil || len(problems) != 1 || problems[0].Code != driver.CodeInvalid || problems[0].Field != tc.field {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "BEGIN PRIVATE") {
				t.Errorf("the key is in %v", err)
			}
		})
	}
}

func TestAConfigurationCannotTakeTheFloorsName(t *testing.T) {
	setFloor(t, teamFiles())
	if _, err := Load(t.Context(), Options{Sources: []Source{oneRule(t, `deny contains {"path": ["profile"], "message": "no"} if input.resource.profile == "x"`)}}); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestTheFloorIsPartOfTheDigest(t *testing.T) {
	none := load(t, Options{}).Digest()
	files := teamFiles()
	setFloor(t, files)
	one := load(t, Options{}).Digest()
	with := maps.Clone(files)
	with["settings.yaml"] = "params: {max_pids: 7}\n"
	setFloor(t, with)
	if two := load(t, Options{}).Digest(); none == one || one == two {
		t.Errorf("%s, %s, %s", none, one, two)
	}
}

func TestTheKeyOfTheFloorMayBeInAFile(t *testing.T) {
	setFloor(t, teamFiles())
	name := filepath.Join(t.TempDir(), "floor.pub")
	if err := os.WriteFile(name, []byte(os.Getenv(FloorKeyVariable)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(FloorKeyVariable, name)
	t.Setenv(FloorRevisionVariable, "7")
	if _, err := Load(t.Context(), Options{}); err != nil {
		t.Error(err)
	}
}
