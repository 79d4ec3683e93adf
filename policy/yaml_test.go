package policy

import (
	"strings"
	"testing"
)

func TestAMistakeInYAMLIsToldByItsLine(t *testing.T) {
	const first = "waivers:\n  - id: W-1\n    reason: a good reason for all of it\n"
	for _, c := range []struct{ name, file, text, want string }{
		{"a field that is none", "waivers.yaml", first + "  - id: W-2\n    reson: misspelt\n", `waivers.yaml: yaml: line 5: unknown field "reson"`},
		{"a field that is none in a target", "waivers.yaml", first + "    target:\n      nme: python\n", `yaml: line 5: unknown field "nme"`},
		{"a field of another kind", "waivers.yaml", first + "  - id: W-2\n    reason: [a, b]\n", "yaml: line 5: reason cannot be of the kind array"},
		{"a waiver that is a text", "waivers.yaml", first + "  - W-2\n", "yaml: line 4: "},
		{"a list that is none", "waivers.yaml", "waivers:\n  id: W-1\n", "yaml: line 1: waivers cannot be of the kind object"},
		{"another key at the top", "waivers.yaml", first + "waiver: []\n", `yaml: line 4: unknown field "waiver"`},
		{"a key that stands twice", "waivers.yaml", first + "    reason: another one\n", "line 4: "},
		{"what is no YAML", "waivers.yaml", first + "  - id: [\n", "yaml: line"},
		{"JSON", "waivers.json", "{\"waivers\": [\n{\"id\": \"W-1\",\n\"reson\": 1}]}", `waivers.json: yaml: line 3: unknown field "reson"`},
		{"a key that is no text", "settings.yaml", "mode: enforce\nparams:\n  1: x\n", "yaml: line 3: there is a key that is no text"},
		{"a number without end", "settings.yaml", "params:\n  max_pids: .5\n  max_age: -.inf\n", "yaml: line 3: there is a key that is no text, or a value"},
		{"a setting that is none", "settings.yaml", "mode: enforce\nparam: {}\n", `settings.yaml: yaml: line 2: unknown field "param"`},
		{"a setting of another kind", "settings.yaml", "params:\n  max_pids: 1\nmode: 5\n", "settings.yaml: yaml: line 3: mode cannot be of the kind number"},
	} {
		_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{c.file: c.text})}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), " json: ") {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestAWaiverKnowsItsFileAndLine(t *testing.T) {
	src := source(t, map[string]string{"waivers.yaml": "# ours\nwaivers:\n  - id: W-1\n    rule: SBX-RES-005\n  - {id: W-2}\n"})
	e := load(t, Options{Sources: []Source{src}, Waivers: []Waiver{goodWaiver(func(w *Waiver) { w.ID = "C-1" })}})
	var got []string
	for _, w := range e.Waivers() {
		got = append(got, strings.TrimPrefix(w.File, src.Dir)+":"+string(rune('0'+w.Line))+" "+w.Field)
	}
	if want := `/waivers.yaml:3 policy.waivers["W-1"]|/waivers.yaml:5 policy.waivers["W-2"]|:0 policy.waivers["C-1"]`; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}
