package policy

import (
	"slices"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestALabelThatNoRuleLooksUpMayBeUnknown(t *testing.T) {
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource(), Unknown: []string{`labels["build"]`}}
	in.Resource.Labels = map[string]string{"owner": "data"}
	found := func(e *Engine, id string) sandbox.Decision {
		for _, f := range judge(t, e, in).Findings {
			if f.Rule == id {
				return f.Effect
			}
		}
		return ""
	}
	if got := found(load(t, Options{}), "SBX-TEN-001"); got != "" {
		t.Errorf("the owner is there, and SBX-TEN-001 says %s", got)
	}
	required := Options{Params: map[string]any{"required_labels": []any{"owner", "build"}}}
	if got := found(load(t, required), "SBX-TEN-001"); got != sandbox.Unknown {
		t.Errorf("a label that must be there is not known, and SBX-TEN-001 says %q", got)
	}
	in.Resource.Labels = nil
	if got := found(load(t, Options{}), "SBX-TEN-001"); got != sandbox.Warn {
		t.Errorf("there is no owner, and SBX-TEN-001 says %q", got)
	}
	in.Resource.Labels = map[string]string{"owner": "data", "team": "web", "key": "team"}
	const message = `, "message": "no"}`
	for _, c := range []struct {
		name, body string
		open       bool
	}{
		{"by a name from the parameters", "deny contains {\"path\": [\"labels\", n]" + message + " if {\n\tsome n in data.params.acme_teams\n\tinput.resource.labels[n] == \"x\"\n}", false},
		{"by a name that another label holds", "deny contains {\"path\": [\"labels\"]" + message + " if input.resource.labels[input.resource.labels.key] == \"x\"", false},
		{"by its own name", `deny contains {"path": ["labels", "build"]` + message + ` if input.resource.labels.build == "x"`, true},
		{"by its own name from a list", "deny contains {\"path\": [\"labels\", n]" + message + " if {\n\tsome n in [\"team\", \"build\"]\n\tinput.resource.labels[n] == \"x\"\n}", true},
		{"by every name", "deny contains {\"path\": [\"labels\", n]" + message + " if {\n\tsome n\n\tinput.resource.labels[n] == \"x\"\n}", true},
		{"by every value", "deny contains {\"path\": [\"labels\"]" + message + " if {\n\tsome v in input.resource.labels\n\tv == \"x\"\n}", true},
		{"all at once", `deny contains {"path": ["labels"]` + message + ` if count(input.resource.labels) > 9`, true},
		{"in a comprehension", `deny contains {"path": ["labels"]` + message + ` if count([1 | input.resource.labels[_] == "x"]) > 9`, true},
		{"in a function", "deny contains {\"path\": [\"labels\", n]" + message + " if {\n\tsome n in [\"team\", \"build\"]\n\tnot good(n)\n}\n\ngood(n) if input.resource.labels[n] != \"x\"", true},
		{"by a name that is computed from all", "deny contains {\"path\": [\"labels\"]" + message + " if input.resource.labels[concat(\"\", [k | some k, v in input.resource.labels; v == \"web\"])] == \"x\"", true},
		{"after a condition on it", "deny contains {\"path\": [\"labels\"]" + message + " if {\n\tsome n in [\"build\", \"team\"]\n\tinput.resource.labels[n] == \"go\"\n\tinput.resource.labels.team == \"x\"\n}", true},
	} {
		e := load(t, Options{Sources: []Source{oneRule(t, c.body)}})
		v := judge(t, e, in)
		open := slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == "ACME-001" && f.Effect == sandbox.Unknown })
		if open != c.open || slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == "ACME-001" && f.Effect != sandbox.Unknown }) {
			t.Errorf("%s: not decided %v, want %v: %+v", c.name, open, c.open, v.Findings)
		}
	}
}
