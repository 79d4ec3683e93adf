package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestAnAnswerOfAPlaceThatIsNoneIsTheRulesFault(t *testing.T) {
	answer := func(path string) string {
		return `deny contains {"path": ` + path + `, "message": "no"} if not input.resource.labels.x`
	}
	for path, want := range map[string]string{
		`["label", "x"]`:                        "there is no such place; at the top there are backend",
		`["labels", "x", "y"]`:                  `labels["x"] has nothing below it`,
		`["labels", 0]`:                         `write ["labels", "NAME"]`,
		`["env", 0]`:                            `write ["env", "NAME"]`,
		`["network", "egres", 0]`:               "at network there are default, dns, egress",
		`["network", "egress", "host"]`:         "network.egress is a list",
		`["network", "egress", 0, "host", "a"]`: "nothing below it",
		`["schedule", "cron"]`:                  "no template has schedule",
		`["nodes", 0, "reaper"]`:                "there is no such place",
		`"resource.labels.x"`:                   "there is no such place",
		`[]`:                                    "has no path",
	} {
		e := load(t, Options{Sources: []Source{oneRule(t, answer(path))}})
		in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource(), Unknown: []string{`labels["x"]`}}
		v := judge(t, e, in)
		i := slices.IndexFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == "ACME-001" && f.Effect == sandbox.Failed })
		if v.Decision != sandbox.Failed || i < 0 || !strings.Contains(v.Findings[i].Message, want) {
			t.Errorf("%s: %s %+v, want %q", path, v.Decision, v.Findings, want)
			continue
		}
		if fix := v.Findings[i].Remediation; !strings.Contains(fix, "author") || !strings.Contains(fix, "rule.rego") || strings.Contains(fix, "handbook") {
			t.Errorf("%s: the fix is for whoever owns the resource: %s", path, fix)
		}
	}
	for _, path := range []string{
		`["labels"]`, `["labels", "x"]`, `"labels.x"`, `["env", "A"]`, `["files", "/etc/x"]`, `["command", 3]`, `["network", "egress", 7, "ports", 0]`, `["image"]`,
		`["image", "digest"]`, `["mounts", 0, "source"]`, `["process", "cap_add", 1]`,
	} {
		e := load(t, Options{Sources: []Source{oneRule(t, answer(path))}})
		if v := judge(t, e, Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}); v.Decision != sandbox.Deny {
			t.Errorf("%s: %s %+v", path, v.Decision, v.Findings)
		}
	}
}

// Each kind has its own part of the resource.
func TestEachKindHasItsPlaces(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		path string
		ok   bool
	}{
		{KindNetworkPolicy, "network.egress[0].why", true}, {KindNetworkPolicy, "image", false}, {KindReaperSchedule, "schedule.max_age_seconds", true},
		{KindReaperSchedule, `labels["a"]`, true}, {KindReaperSchedule, "network", false}, {KindImage, `build_args["A"]`, true}, {KindImage, "mounts", false},
		{KindProvider, "provider.endpoint", true}, {KindProvider, "provider.endpoin", false}, {KindContainer, "process.privileged", true},
		{KindContainer, "provider", false}, {KindSandbox, "detached", true}, {KindGraph, "nodes[3].reaper", true}, {KindGraph, "nodes[3].reapers", false},
		{KindGraph, "shared[0].name", true}, {KindGraph, "reaper", false},
	} {
		at, err := parsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkPath(c.kind, at); (err == nil) != c.ok {
			t.Errorf("%s of a %s: %v", c.path, c.kind, err)
		}
	}
}

func TestATestOfARuleHoldsItsAnswersAgainstWhatRulesMayAnswer(t *testing.T) {
	const test = `package custom.acme.teams_test

import data.custom.acme.teams as rule

test_fail if {
	count(rule.deny) == 1 with input as {"kind": "template", "resource": {"labels": {"team": "ops"}}}
}
`
	for _, c := range []struct{ name, answer, want string }{
		{"a good one", `{"path": ["labels", "team"], "message": message}`, ""},
		{"a path that is none", `{"path": ["label", "team"], "message": message}`, "there is no such place"},
		{"no message", `{"path": ["labels", "team"], "massage": message}`, "has no message"},
		{"a text", `message`, "is not an object"},
		{"a broken index", `{"path": ["network", "egress", 0.5], "message": message}`, "broken index"},
		{"waivable without need", `{"path": ["labels"], "message": message, "waivable": true}`, "waivable = false at most"},
	} {
		src := source(t, map[string]string{
			"rule.rego": customRule("ACME-001", "custom.acme.teams", `deny contains `+c.answer+` if {
	some team in [input.resource.labels.team]
	not team in data.params.acme_teams
	message := sprintf("%v is no team", [team])
}`), "rule_test.rego": test,
		})
		got, err := Test(t.Context(), src)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got[0].Pass != (c.want == "") || !strings.Contains(got[0].Err, c.want) || len(got[0].Answers) != 1 || !strings.Contains(got[0].Answers[0], "ops is no team") {
			t.Errorf("%s: %+v", c.name, got[0])
		}
	}
}
