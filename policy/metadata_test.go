package policy

import (
	"fmt"
	"strings"
	"testing"
)

// A mistake in what a rule says of itself is told as FILE:LINE, so that
// whoever has twenty rules need not look for it.
func TestAMistakeInMETADATAIsToldByFileAndLine(t *testing.T) {
	answer := `deny contains {"path": ["profile"], "message": "no"} if input.resource.profile == "compat"`
	good := customRule("ACME-001", "custom.acme.teams", answer)
	lines := strings.Split(good, "\n")
	at := func(text string) int { // the line of good that this is on
		for i, l := range lines {
			if strings.Contains(l, text) {
				return i + 1
			}
		}
		t.Fatalf("there is no %q", text)
		return 0
	}
	for _, tc := range []struct {
		name, old, new string
		line           int
		want           string
	}{
		{"a title that is missing", "# title: A rule of ours\n", "", 1, "title is missing"},
		{"a title that is empty", "title: A rule of ours", `title: ""`, at("title:"), "title is missing"},
		{"a description that is empty", "description: It says what we want.", `description: " "`, at("# description:"), "description is missing"},
		{"an id of another form", "id: ACME-001", "id: acme", at("#   id:"), `custom.id "acme" is not like ACME-NET-001`},
		{"an id of a built-in rule", "id: ACME-001", "id: SBX-NET-002", at("#   id:"), "the prefix SBX-"},
		{"an id that is missing", "#   id: ACME-001\n", "", at("# custom:"), "no METADATA with a custom.id"},
		{"a severity that is none", "severity: medium", "severity: dire", at("severity:"), `custom.severity "dire" is none of`},
		{"a severity that is missing", "#   severity: medium\n", "", at("# custom:"), `custom.severity "" is none of`},
		{"an effect that is none", "effect: deny", "effect: forbid", at("effect:"), `custom.effect "forbid" is neither`},
		{"an effect that it does not have", "effect: deny", "effect: warn", at("effect:"), `custom.effect is "warn", but the package answers ["deny"]`},
		{"a kind that is none", "[template, sandbox]", "[templates]", at("kinds:"), "custom.kinds"},
		{"a stage that is none", "[plan, file, apply, runtime]", "[plan, night]", at("stages:"), "custom.stages"},
		{"no word of waivers", "#   waivable: true\n", "", at("# custom:"), "custom.waivable is missing"},
		{"a remediation that is empty", "Do as the handbook says.", `""`, at("remediation:"), "custom.remediation is missing"},
		{"no sources", "#   sources:\n#     - document: our handbook\n#       section: sandboxes\n", "", at("# custom:"), "custom.sources are missing"},
		{"a second source without a section", "#       section: sandboxes\n", "#       section: sandboxes\n#     - document: our wiki\n", at("section:") + 1, "custom.sources.1 needs a document and a section"},
		{"a parameter without a description", "description: teams there are", `description: ""`, at("acme_teams:"), "custom.params.acme_teams: description is missing"},
		{"a parameter that tightens nowhere", "tighten: fewer", "tighten: less", at("acme_teams:"), `custom.params.acme_teams: tighten "less"`},
		{"a field that is none", "severity: medium", "severty: medium", at("severity:"), `custom: unknown field "severty"`},
		{"a field of a parameter that is none", "tighten: fewer", "tighter: fewer", at("tighten:"), `custom: unknown field "tighter"`},
		{"a field of another kind", "waivable: true", "waivable: maybe", at("waivable:"), "waivable cannot be of the kind string"},
		{"what is no YAML", "kinds: [template, sandbox]", "kinds: [template, sandbox", at("kinds:"), "yaml"},
		{"no METADATA at all", good[:strings.Index(good, "package ")], "# ours\n", 2, "no METADATA with a custom.id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(good, tc.old, tc.new, 1)
			if text == good {
				t.Fatalf("there is no %q", tc.old)
			}
			_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{"rule.rego": text})}})
			if place := fmt.Sprintf("rule.rego:%d: ", tc.line); err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s… %s", err, place, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), " json: ") {
				t.Errorf("it speaks of JSON to who wrote YAML: %v", err)
			}
		})
	}
}

func TestTheLineIsThatOfTheFileWhereMETADATADoesNotBeginIt(t *testing.T) {
	text := "# Copyright of ours\n\n" + strings.Replace(customRule("ACME-001", "custom.acme.teams", teamRule), "severity: medium", "severity: dire", 1)
	_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{"rule.rego": text})}})
	if err == nil || !strings.Contains(err.Error(), "rule.rego:9: METADATA: custom.severity") {
		t.Errorf("got %v", err)
	}
}

// It is read once: with a reading for each this does not end.
func TestManyMistakesInMETADATAAreToldInTheTimeOfOne(t *testing.T) {
	good := customRule("ACME-001", "custom.acme.teams", teamRule)
	text := strings.Replace(good, "#   sources:\n", "#   sources:\n"+strings.Repeat("#     - {}\n", 4000), 1)
	_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{"rule.rego": text})}})
	if err == nil || strings.Count(err.Error(), "needs a document and a section") != 4000 {
		t.Errorf("got %.200v", err)
	}
}

func TestAnIdThatIsTakenIsToldWithBothPlaces(t *testing.T) {
	_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{
		"a.rego": customRule("ACME-001", "custom.acme.teams", teamRule),
		"b.rego": "# ours\n\n" + customRule("ACME-001", "custom.acme.other", teamRule),
	})}})
	if err == nil || !strings.Contains(err.Error(), "a.rego:6") || !strings.Contains(err.Error(), "b.rego:8") || !strings.Contains(err.Error(), "is taken by") {
		t.Errorf("got %v", err)
	}
}
