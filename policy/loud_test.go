package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// The ways in which a policy elsewhere passes without having judged. Here each
// says so, and none passes: it is an error at load, or a verdict that is not
// allow and names what is wrong.
func TestWhatWouldPassByAccidentIsLoud(t *testing.T) {
	private, public := keys(t, algEdDSA)
	_, stranger := keys(t, algEdDSA)
	packed := signed(t, private, teamFiles())
	names, files := unpack(t, packed)
	unsigned := pack(t, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "/.signatures.json" }), files, nil)
	old := bytes.Clone(packed)
	floor := filepath.Join(t.TempDir(), "floor.tar.gz")
	if err := os.WriteFile(floor, signed(t, private, map[string]string{"settings.yaml": "{}\n"}), 0o600); err != nil {
		t.Fatal(err)
	}
	rule := func(body string) Options { return Options{Sources: []Source{oneRule(t, body)}} }
	answer := `deny contains {"path": ["labels"], "message": "no"} if `
	good := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
	change := func(f func(*Input)) Input {
		in := good
		in.Resource = goodResource()
		f(&in)
		return in
	}
	for _, tc := range []struct {
		name    string
		opts    Options
		in      Input
		floored bool
		says    string
	}{
		{name: "a misspelt path (M163)", opts: rule(answer + `input.resource.lifetime_second > 1`), in: good, says: "undefined ref: input.resource.lifetime_second"},
		{name: "a wrong package", opts: Options{Sources: []Source{source(t, map[string]string{"a.rego": customRule("ACME-001", "sandbox", answer+`input.kind == "template"`)})}}, in: good, says: "outside custom.acme"},
		{name: "a function that fails", opts: rule(answer + `to_number(input.resource.labels.team) > 1`), in: good, says: "ACME-001 error"},
		{name: "an empty text where a CIDR is checked", opts: rule(answer + `net.cidr_contains("10.0.0.0/8", trim_left(input.resource.labels.team, "data"))`), in: good, says: "ACME-001 error"},
		{name: "an empty CIDR in the configuration", in: change(func(in *Input) { in.Resource.Network.Egress = []Egress{{CIDR: new("")}} }), says: "network.egress[0].cidr"},
		{name: "an undefined helper", opts: rule(answer + `data.custom.acme.lib.is_bad(input.resource)`), in: good, says: "undefined function data.custom.acme.lib.is_bad"},
		{name: "an undefined helper that is a value", opts: rule(answer + `data.custom.acme.lib.bad == input.kind`), in: good, says: "refers to nothing"},
		{name: "deny that is no set", opts: rule(`deny if input.kind == "template"`), in: good, says: "must be a set"},
		{name: "an unknown value in a plan (M164)", in: change(func(in *Input) { in.Unknown = []string{"image"} }), says: "SBX-IMG-001 unknown image"},
		{name: "an unknown value at the runtime", in: change(func(in *Input) { in.Stage, in.Unknown = StageRuntime, []string{"image"} }), says: "SBX-IMG-001 deny image"},
		{name: "a kind that no rule judges", in: Input{Kind: "spaceship", Stage: StagePlan}, says: "no kind of input"},
		{name: "a module that shadows a built-in rule", opts: Options{Sources: []Source{source(t, map[string]string{
			"a.rego": customRule("ACME-001", "custom.acme.teams", teamRule), "b.rego": "package sandboxio.lib.cap\n\nproblem(_, _, _) := false if false\n",
		})}}, in: good, says: "is outside custom.acme"},
		{name: "a schema from another host", opts: Options{Sources: []Source{source(t, map[string]string{
			"a.rego": customRule("ACME-001", "custom.acme.teams", "# METADATA\n# schemas:\n#   - input.resource: {\"$ref\": \"http://127.0.0.1:1/s.json\"}\n"+teamRule),
		})}}, in: good, says: "remote reference loading disabled"},
		{name: "an unsigned bundle", opts: acme(Bundle{From: bytesOf(unsigned), Key: public}), in: good, says: "missing .signatures.json"},
		{name: "a bundle that somebody else signed", opts: acme(Bundle{From: bytesOf(packed), Key: stranger}), in: good, says: "verify JWT signature"},
		{name: "a bundle that is rolled back", opts: acme(Bundle{From: bytesOf(old), Key: public, MinRevision: 8}), in: good, says: "rollback"},
		{name: "a change that sets the mode to advise", opts: Options{Mode: Advise}, in: good, floored: true, says: "SBX-POL-001 deny policy.mode"},
		{name: "a change that sets the mode to advise, without a floor", opts: Options{Mode: Advise}, in: good, says: "SBX-POL-001 warn policy.mode"},
		{name: "a change that loosens a parameter", opts: Options{Params: map[string]any{"max_pids": 1 << 20}}, in: good, floored: true, says: "SBX-POL-001 deny policy.params.max_pids"},
		{name: "a change that adds its own waiver", opts: Options{Waivers: []Waiver{goodWaiver()}, Now: clock}, in: forking(), floored: true, says: `SBX-POL-001 deny policy.waivers["W-1"]`},
		{name: "a change that adds its own waiver, without a floor", opts: Options{Waivers: []Waiver{goodWaiver()}, Now: clock}, in: forking(), says: `SBX-POL-001 warn policy.waivers["W-1"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.floored {
				t.Setenv(FloorVariable, floor)
				t.Setenv(FloorKeyVariable, public)
			}
			e, err := Load(t.Context(), tc.opts)
			var v sandbox.Verdict
			if err == nil {
				v, err = e.Judge(t.Context(), tc.in)
			}
			if err == nil && v.Decision == sandbox.Allow {
				t.Fatalf("it passes: %q", said(v))
			}
			told := strings.Join(said(v), "\n")
			if err != nil {
				told = err.Error()
			}
			if !strings.Contains(told, tc.says) {
				t.Errorf("it does not say %q:\n%s", tc.says, told)
			}
		})
	}
}
