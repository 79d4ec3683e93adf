package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// today is the clock of these tests.
var today = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return today }

// goodWaiver excuses too many processes in the template "python".
func goodWaiver(change ...func(*Waiver)) Waiver {
	w := Waiver{
		ID: "W-1", Rule: "SBX-RES-005", Target: Target{Name: "python"}, Path: "resources.pids", Value: new("2000"),
		Reason: "the build forks once for each of our packages", Owner: "team-build", Expires: "2026-12-31",
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

// forking is an input that goodWaiver is about.
func forking() Input {
	in := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
	in.Resource.Resources.PIDs = new(int64(2000))
	return in
}

// exempt is an engine with a file of waivers, beside a rule of a customer's.
func exempt(t testing.TB, waivers ...Waiver) *Engine {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"waivers": waivers})
	if err != nil {
		t.Fatal(err)
	}
	return load(t, Options{Now: clock, Sources: []Source{source(t, map[string]string{"waivers.json": string(raw)})}})
}

// said lists rule, effect and path of every finding.
func said(v sandbox.Verdict) []string {
	var out []string
	for _, f := range v.Findings {
		out = append(out, fmt.Sprintf("%s %s %s", f.Rule, f.Effect, f.Path))
	}
	return out
}

func TestAWaivedFindingStaysInTheVerdict(t *testing.T) {
	v := judge(t, exempt(t, goodWaiver()), forking())
	if got := said(v); v.Decision != sandbox.Allow || !slices.Equal(got, []string{"SBX-RES-005 waived resources.pids"}) {
		t.Fatalf("%s %q", v.Decision, got)
	}
	w := v.Findings[0].Waiver
	if w == nil || w.ID != "W-1" || w.Owner != "team-build" || w.Effect != sandbox.Deny || w.Origin != "acme" || !w.Expires.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", w)
	}
}

func TestAWaiverHoldsAtEveryDoor(t *testing.T) {
	e := exempt(t, goodWaiver())
	for _, stage := range stages {
		in := forking()
		in.Stage = stage
		if v := judge(t, e, in); v.Decision != sandbox.Allow {
			t.Errorf("%s: %s %q", stage, v.Decision, said(v))
		}
	}
	req := sandbox.Request{Backend: driver.Info{Name: "memory"}, Spec: goodSpec(), Plan: driver.Plan{Isolation: driver.Container}, Template: "python"}
	req.Spec.Resources.PIDs = 2000
	if v, err := e.Guard().Judge(t.Context(), req); err != nil || v.Decision != sandbox.Allow {
		t.Errorf("a sandbox from the template: %v %s %q", err, v.Decision, said(v))
	}
	for _, name := range []string{"", "node", "pythonx"} {
		req.Template = name
		if v, err := e.Guard().Judge(t.Context(), req); err != nil || v.Decision != sandbox.Deny || len(v.Findings) != 1 {
			t.Errorf("a sandbox from %q: %v %s %q", name, err, v.Decision, said(v))
		}
	}
}

func TestAWorseValueIsNotHidden(t *testing.T) {
	in := forking()
	in.Resource.Resources.PIDs = new(int64(2001))
	v := judge(t, exempt(t, goodWaiver()), in)
	if got := said(v); v.Decision != sandbox.Deny || !slices.Equal(got, []string{"SBX-RES-005 deny resources.pids", `SBX-WVR-002 warn policy.waivers["W-1"]`}) {
		t.Errorf("%s %q", v.Decision, got)
	}
	if !strings.Contains(v.Findings[1].Message, "another") {
		t.Error(v.Findings[1].Message)
	}
}

// A waiver ends where what it was granted for becomes something else, though the
// value that it names is the same.
func TestAWaiverDoesNotOutliveItsOccasion(t *testing.T) {
	tier := func(change func(*Resource)) Input {
		in := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
		in.Resource.Isolation, in.Resource.Trust, in.Resource.TrustReason = new("container"), new("untrusted"), nil
		change(&in.Resource)
		return in
	}
	mount := func(at string) Input {
		return Input{Kind: KindContainer, Stage: StageFile, Address: "docker_container.c", Resource: Resource{Mounts: []Mount{{Type: new("bind"), Source: &at}}}}
	}
	of := func(rule, path, value string) Waiver {
		return goodWaiver(func(w *Waiver) { w.Rule, w.Path, w.Value, w.Expires = rule, path, &value, "2026-12-20" })
	}
	foreign := func(w Waiver) Waiver { w.Target = Target{Address: "docker_container.c"}; return w }
	for _, tc := range []struct {
		name   string
		waiver Waiver
		in     Input
		want   string
	}{
		{"untrusted code of one tenant", of("SBX-ISO-001", "isolation", "container"), tier(func(*Resource) {}), "SBX-ISO-001 waived isolation"},
		{"which becomes that of several", of("SBX-ISO-001", "isolation", "container"), tier(func(r *Resource) { r.MultiTenant = new(true) }), "SBX-ISO-001 deny isolation"},
		{"code of which nothing is said", of("SBX-ISO-001", "trust", "unstated"), tier(func(r *Resource) { r.Trust = new("unstated") }), "SBX-ISO-001 waived trust"},
		{"which becomes untrusted", of("SBX-ISO-001", "trust", "unstated"), tier(func(*Resource) {}), "SBX-ISO-001 deny isolation"},
		{"a path of the host", foreign(of("SBX-ISO-006", "mounts[0].source", "/srv/data")), mount("/srv/data"), "SBX-ISO-006 waived mounts[0].source"},
		{"a path that the host lives by", foreign(of("SBX-ISO-006", "mounts[0].source", "/etc")), mount("/etc"), "SBX-ISO-006 deny mounts[0].source"},
	} {
		got := said(judge(t, exempt(t, tc.waiver), tc.in))
		if !slices.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if idle := slices.Contains(got, `SBX-WVR-002 warn policy.waivers["W-1"]`); idle == strings.Contains(tc.want, "waived") {
			t.Errorf("%s: idle %t in %q", tc.name, idle, got)
		}
	}
}

func TestADateOfExpiryIncludesItsOwnDay(t *testing.T) {
	for _, tc := range []struct {
		expires, now string
		want         sandbox.Decision
	}{
		{"2026-12-31", "2026-12-31T00:00:00Z", sandbox.Waived},
		{"2026-12-31", "2026-12-31T23:59:59Z", sandbox.Waived},
		{"2026-12-31", "2027-01-01T01:59:59+02:00", sandbox.Waived}, // UTC's day, not the reader's
		{"2026-12-31", "2027-01-01T00:00:00Z", sandbox.Deny},
		{"2026-12-31T12:00:00Z", "2026-12-31T11:59:59Z", sandbox.Waived},
		{"2026-12-31T12:00:00Z", "2026-12-31T12:00:00Z", sandbox.Deny},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		e := load(t, Options{Waivers: []Waiver{goodWaiver(func(w *Waiver) { w.Expires = tc.expires })}, Now: func() time.Time { return now }})
		found := false
		for _, f := range judge(t, e, forking()).Findings {
			if f.Rule == "SBX-RES-005" {
				found = true
				if f.Effect != tc.want {
					t.Errorf("%s at %s: %s, want %s", tc.expires, tc.now, f.Effect, tc.want)
				}
			}
		}
		if !found {
			t.Errorf("%s at %s: nothing was found", tc.expires, tc.now)
		}
	}
}

func TestAWaiverWithAFaultHasNoEffect(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		change     func(*Waiver)
	}{
		{"expired", "expired at", func(w *Waiver) { w.Expires = "2026-11-28" }},
		{"expired this very second", "expired at", func(w *Waiver) { w.Expires = "2026-11-29T12:00:00Z" }},
		{"too long", "more than 90 days", func(w *Waiver) { w.Expires = "2027-02-28" }},
		{"too long for a critical rule", "more than 30 days", func(w *Waiver) { w.Rule, w.Path, w.Expires = "SBX-NET-002", "network.egress[0].cidr", "2026-12-30" }},
		{"with an expiry that cannot be read", "not a time of RFC 3339", func(w *Waiver) { w.Expires = "next year" }},
		{"without an expiry", "not a time of RFC 3339", func(w *Waiver) { w.Expires = "" }},
		{"for a rule that cannot be waived", "cannot be waived", func(w *Waiver) { w.Rule, w.Path = "SBX-NET-004", "network.egress[0].cidr" }},
		{"for a rule of the engine's own", "cannot be waived", func(w *Waiver) { w.Rule = weakenedID }},
		{"for the failure of a rule", "cannot be waived", func(w *Waiver) { w.Rule = failedID }},
		{"for a waiver's fault", "cannot be waived", func(w *Waiver) { w.Rule = faultyID }},
		{"for a rule that is not there", "there is no rule", func(w *Waiver) { w.Rule = "SBX-RES-999" }},
		{"without a target", "exactly one of name and address", func(w *Waiver) { w.Target = Target{} }},
		{"of every name", "too broad", func(w *Waiver) { w.Target.Name = "*" }},
		{"of some names", "too broad", func(w *Waiver) { w.Target.Name = "py*" }},
		{"of every address", "too broad", func(w *Waiver) { w.Target = Target{Address: "*"} }},
		{"of every resource of a type", "too broad", func(w *Waiver) { w.Target = Target{Address: "docker_container.*"} }},
		{"by name and address", "exactly one of", func(w *Waiver) { w.Target.Address = "docker_container.x" }},
		{"by an address that only a review sees", "use target.name", func(w *Waiver) { w.Target = Target{Address: `module.a["x.y"].sandboxio_template.python`} }},
		{"of another kind", "none of", func(w *Waiver) { w.Target.Kind = "templates" }},
		{"without a path", "cannot be read", func(w *Waiver) { w.Path = "" }},
		{"with any path", "cannot be read", func(w *Waiver) { w.Path = "[*]..x" }},
		{"without a value", "names no value", func(w *Waiver) { w.Value = nil }},
		{"with two values", "both", func(w *Waiver) { w.ValueSHA256 = digestText("2000") }},
		{"with a digest that is none", "not a SHA-256", func(w *Waiver) { w.Value, w.ValueSHA256 = nil, "abc" }},
		{"with a variable's value in clear", "use value_sha256", func(w *Waiver) { w.Rule, w.Path = "SBX-SEC-001", `env["A_TOKEN"]` }},
		{"without a reason", "less than 20", func(w *Waiver) { w.Reason = " short                          " }},
		{"without an owner", "no owner", func(w *Waiver) { w.Owner = " " }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := exempt(t, goodWaiver(tc.change))
			v := judge(t, e, forking())
			if v.Decision != sandbox.Deny || !slices.Contains(said(v), "SBX-RES-005 deny resources.pids") {
				t.Errorf("%s %q", v.Decision, said(v))
			}
			fault := e.Waivers()[0].Problem
			if !strings.Contains(fault, tc.says) {
				t.Errorf("%q does not say %q", fault, tc.says)
			}
			told := slices.ContainsFunc(append(v.Findings, e.Unmatched()...), func(f sandbox.Finding) bool {
				return (f.Rule == faultyID || f.Rule == idleID) && f.Effect == sandbox.Warn && f.Path == `policy.waivers["W-1"]`
			})
			if !told {
				t.Errorf("nobody is told: %q", said(v))
			}
		})
	}
}

func TestAWaiverThatExpiresBetweenPlanAndApplyDeniesAtApply(t *testing.T) {
	now := today
	e := load(t, Options{Waivers: []Waiver{goodWaiver(func(w *Waiver) { w.Expires = "2026-11-29T12:05:00Z" })}, Now: func() time.Time { return now }})
	in := forking()
	if v := judge(t, e, in); v.Decision != sandbox.Warn {
		t.Errorf("in the plan: %s %q", v.Decision, said(v))
	}
	now, in.Stage = now.Add(5*time.Minute), StageApply
	if v := judge(t, e, in); v.Decision != sandbox.Deny || !slices.Contains(said(v), `SBX-WVR-001 warn policy.waivers["W-1"]`) {
		t.Errorf("in the apply: %s %q", v.Decision, said(v))
	}
}

func TestAWaiverInTheConfigurationItExcusesIsToldOf(t *testing.T) {
	v := judge(t, load(t, Options{Waivers: []Waiver{goodWaiver()}, Now: clock}), forking())
	want := []string{`SBX-POL-001 warn policy.waivers["W-1"]`, "SBX-RES-005 waived resources.pids"}
	if v.Decision != sandbox.Warn || !slices.Equal(said(v), want) {
		t.Errorf("%s %q", v.Decision, said(v))
	}
}

func TestAWaiverThatExcusesNothingIsToldOf(t *testing.T) {
	e := exempt(t, goodWaiver(), goodWaiver(func(w *Waiver) { w.ID, w.Target.Name = "W-2", "node" }))
	in := forking()
	in.Resource.Resources.PIDs = new(int64(64))
	v := judge(t, e, in)
	if !slices.Equal(said(v), []string{`SBX-WVR-002 warn policy.waivers["W-1"]`}) || !strings.Contains(v.Findings[0].Message, "finds nothing") {
		t.Errorf("%+v", v.Findings)
	}
	if got := e.Unmatched(); len(got) != 1 || got[0].Path != `policy.waivers["W-2"]` || got[0].Rule != idleID {
		t.Errorf("%+v", got)
	}
	in.Kind = KindReaperSchedule // which the rule does not judge
	if v := judge(t, e, in); slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == idleID }) {
		t.Errorf("%q", said(v))
	}
}

// An unknown value cannot be the one that somebody looked at.
func TestAWaiverAtAnotherPathSaysWhereTheFindingIs(t *testing.T) {
	v := judge(t, exempt(t, goodWaiver(func(w *Waiver) { w.Path = "caps.pids" })), forking())
	if !slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool {
		return strings.HasSuffix(f.Message, "finds nothing at caps.pids, but at resources.pids")
	}) {
		t.Errorf("%+v", v.Findings)
	}
}

func TestAnUnknownValueIsNotWaived(t *testing.T) {
	e := exempt(t, goodWaiver())
	in := forking()
	in.Unknown = []string{"resources.pids"}
	if v := judge(t, e, in); v.Decision != sandbox.Unknown || len(v.Findings) != 1 {
		t.Errorf("in the plan: %s %q", v.Decision, said(v))
	}
	in.Stage = StageApply
	if v := judge(t, e, in); v.Decision != sandbox.Deny || len(v.Findings) != 1 {
		t.Errorf("in the apply: %s %q", v.Decision, said(v))
	}
	in.Unknown = []string{"resources"}
	if v := judge(t, e, in); v.Decision != sandbox.Deny {
		t.Errorf("inside of what is unknown: %s %q", v.Decision, said(v))
	}
}

func TestAFailedRuleIsNotWaived(t *testing.T) {
	raw, err := json.Marshal(map[string]any{"waivers": []Waiver{goodWaiver(func(w *Waiver) {
		w.Rule, w.Path, w.Value = "ACME-001", "labels", new(`{"team":"data"}`)
	})}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range brokenRules {
		e := load(t, Options{Now: clock, Sources: []Source{source(t, map[string]string{
			"rule.rego": customRule("ACME-001", "custom.acme.teams", body), "waivers.json": string(raw),
		})}})
		in := forking()
		in.Resource = goodResource()
		if v := judge(t, e, in); v.Decision != sandbox.Failed {
			t.Errorf("%s: %s %q", name, v.Decision, said(v))
		}
	}
}

func TestAWaiverBindsTheValueAtThePath(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	r := badResource()
	r.Labels = map[string]string{"note": "see https://me:pw@git.example/x"}
	for _, tc := range []struct {
		rule, path, value, sha string
		binds                  bool
	}{
		{rule: "SBX-NET-002", path: "network.egress[0].cidr", value: "0.0.0.0/0", binds: true},
		{rule: "SBX-NET-002", path: "network.egress[*].cidr", value: "0.0.0.0/0", binds: true},
		{rule: "SBX-NET-002", path: "network.egress[1].cidr", value: "0.0.0.0/0"},
		{rule: "SBX-NET-002", path: "network.egress[*]", value: "0.0.0.0/0"},
		{rule: "SBX-NET-002", path: "network[*][*].cidr", value: "0.0.0.0/0"},
		{rule: "SBX-IMG-001", path: "image", value: "python:3.12", binds: true},
		{rule: "SBX-IMG-001", path: "image", value: "python:3.13"},
		{rule: "SBX-IMG-001", path: "image", sha: digestText("python:3.12"), binds: true},
		{rule: "SBX-IMG-001", path: "image.ref", value: "python:3.12"},
		{rule: "SBX-LIF-001", path: "reaper", value: "null", binds: true},
		{rule: "SBX-RES-005", path: "resources.pids", value: "null", binds: true},
		{rule: "SBX-RES-005", path: "resources.pids", value: "0"},
		{rule: "SBX-SEC-001", path: `env["AWS_SECRET_ACCESS_KEY"]`, sha: digestText(secret), binds: true},
		{rule: "SBX-SEC-001", path: `env["AWS_SECRET_ACCESS_KEY"]`, sha: digestText("other")},
		{rule: "SBX-SEC-001", path: `env["LANG"]`, sha: digestText(secret)},
		{rule: "SBX-SEC-004", path: `labels["note"]`, value: "see https://me:pw@git.example/x", binds: true},
		{rule: "SBX-ISO-011", path: "profile", value: "compat", binds: true},
	} {
		w := goodWaiver(func(w *Waiver) {
			w.Rule, w.Path, w.Value, w.ValueSHA256, w.Expires = tc.rule, tc.path, nil, tc.sha, "2026-12-20"
		})
		if tc.sha == "" {
			w.Value = &tc.value
		}
		v := judge(t, exempt(t, w), Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: r})
		got := slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == tc.rule && f.Effect == sandbox.Waived })
		if got != tc.binds || got == slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == idleID }) {
			t.Errorf("%+v: waived is %t: %q", tc, got, said(v))
		}
		if raw, err := json.Marshal(v); err != nil || strings.Contains(string(raw), secret) {
			t.Errorf("%v: the value is in %s", err, raw)
		}
	}
}

func TestAnImageThatCannotBeReadIsNotWaived(t *testing.T) {
	in := forking()
	in.Resource = goodResource()
	in.Resource.Image = ImageOf("http://registry.example/X Y")
	e := exempt(t, goodWaiver(func(w *Waiver) { w.Rule, w.Path, w.Value = "SBX-IMG-001", "image", new("null") }))
	if v := judge(t, e, in); v.Decision != sandbox.Deny {
		t.Errorf("%s %q", v.Decision, said(v))
	}
}

func TestAnAddressMatchesAsWrittenAndByAnyKey(t *testing.T) {
	for _, tc := range []struct {
		pattern, address string
		want             bool
	}{
		{"docker_container.a", "docker_container.a", true},
		{"docker_container.a", "docker_container.ab", false},
		{"docker_container.a", "module.x.docker_container.a", false},
		{"docker_container.a", "docker_container.a[0]", false},
		{"docker_container.a[*]", "docker_container.a[0]", true},
		{"docker_container.a[*]", `docker_container.a["b"]`, true},
		{"docker_container.a[*]", "docker_container.a", false},
		{"docker_container.a[*]", `docker_container.a["b"].x`, false},
		{`module.m[*].docker_container.a[*]`, `module.m["k]\"].evil"].docker_container.a[3]`, true},
		{`module.m[*].docker_container.a`, `module.m["x"].module.n["y"].docker_container.a`, false},
		{"docker_container.a[1]", "docker_container.a[10]", false},
	} {
		if got := (Target{Address: tc.pattern}).covers(Input{Address: tc.address}); got != tc.want {
			t.Errorf("%s covers %s: %t", tc.pattern, tc.address, got)
		}
	}
}

func TestAFileOfWaiversIsReadStrictly(t *testing.T) {
	const good = `waivers:
  - id: W-1
    rule: SBX-RES-005
    target: {name: python}
    path: resources.pids
    value: 2000
    reason: the build forks once for each of our packages
    owner: team-build
    expires: 2026-12-31
`
	file := func(name, text string) Options {
		return Options{Now: clock, Sources: []Source{source(t, map[string]string{name: text})}}
	}
	for _, name := range []string{"waivers.yaml", "waivers.yml"} {
		if v := judge(t, load(t, file(name, good)), forking()); v.Decision != sandbox.Allow || len(v.Findings) != 1 {
			t.Errorf("%s: %s %q", name, v.Decision, said(v))
		}
	}
	tabs := "{\"waivers\":\n\t[\n\t\t{\"id\": \"W-1\", \"rule\": \"SBX-RES-005\",\t\"target\": {\"name\": \"python\"},\n\t\t\"path\": \"resources.pids\", \"value\": 2000," +
		" \"reason\": \"the build forks once for each of our packages\", \"owner\": \"team-build\", \"expires\": \"2026-12-31T10:00:00+01:00\"}\n\t]\n}\n"
	if v := judge(t, load(t, file("waivers.json", tabs)), forking()); v.Decision != sandbox.Allow || len(v.Findings) != 1 {
		t.Errorf("JSON with tabs: %s %q", v.Decision, said(v))
	}
	for name, text := range map[string]string{
		"one field twice in JSON":             strings.Replace(tabs, `"value": 2000`, `"value": 2000, "value": 3`, 1),
		"a field that is not known":           strings.Replace(good, "owner:", "ownr:", 1),
		"a target's field that is not known":  strings.Replace(good, "name: python", "names: python", 1),
		"another word than waivers":           strings.Replace(good, "waivers:", "waiver:", 1),
		"an id that is none":                  strings.Replace(good, "W-1", "a b", 1),
		"no id":                               strings.Replace(good, "id: W-1", "id: \"\"", 1),
		"one field twice":                     strings.Replace(good, "owner: team-build", "owner: team-build\n    owner: me", 1),
		"a reason that is a list":             strings.Replace(good, "reason: the", "reason: [the]\n#", 1),
		"no waivers":                          "waivers: []\n",
		"nothing":                             "",
		"a text":                              "waivers",
		"no YAML":                             "waivers: [",
		"a second document":                   good + "---\n" + good,
		"too much":                            good + strings.Repeat("#\n", maxWaiverFile/2),
		"one id twice":                        good + strings.TrimPrefix(good, "waivers:\n"),
		"a value inside of the target's name": strings.Replace(good, "name: python", "name: [python]", 1),
	} {
		_, err := Load(t.Context(), file("waivers.yaml", text))
		if problems := driver.Problems(err); len(problems) == 0 || problems[0].Code != driver.CodeInvalid || !strings.HasPrefix(problems[0].Field, "policy.") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	both := Options{Sources: []Source{source(t, map[string]string{"waivers.yaml": good, "waivers.json": `{"waivers":[]}`})}}
	if _, err := Load(t.Context(), both); err == nil {
		t.Error("two files of waivers are read")
	}
}

func FuzzReadWaivers(f *testing.F) {
	f.Add([]byte(`{"waivers":[{"id":"a","value":null,"expires":"2026-01-01"}]}`))
	f.Add([]byte("a: &a {id: x}\nwaivers: &w\n- *a\n- <<: *a\n  reson: 1\n"))
	f.Add([]byte("waivers: &w [*w]\n"))
	f.Add([]byte("waivers:\n- id: b\n  target: {address: 'module.a[*].b.c[\"x\"]'}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		ws, lines, err := readWaivers(raw)
		if err != nil {
			if strings.HasPrefix(err.Error(), "json: ") {
				t.Errorf("YAML is told of as JSON: %v", err)
			}
			return
		}
		if len(lines) != len(ws) {
			t.Errorf("%d lines of %d waivers", len(lines), len(ws))
		}
		for _, w := range ws {
			e := newWaiver(w, "acme", map[string]*RuleInfo{})
			if e.problem(today) == "" {
				t.Errorf("a waiver for no rule has effect: %+v", w)
			}
			_ = w.Target.covers(Input{Address: w.Target.Address, Name: w.Target.Name})
		}
	})
}

func TestAWaiverBindsValuesThatAreShownToNobodyByTheirDigest(t *testing.T) {
	s := &subject{resource: Resource{
		Env: []Env{{"A", "1"}}, BuildArgs: []Env{{"B", "2"}}, Files: []Env{{"/etc/c", "3"}}, Command: []string{"sh", "-c", "4"},
	}}
	for _, tc := range []struct {
		path, want string
		ok         bool
	}{
		{`env["A"]`, "1", true}, {`env["B"]`, "", false}, {"env", `{"A":"1"}`, true}, {`build_args["B"]`, "2", true}, {`files["/etc/c"]`, "3", true},
		{`files["/etc/c"].x`, "", false}, {"command[2]", "4", true}, {"command[3]", "", false}, {"command", `["sh","-c","4"]`, true}, {"command.x", "", false},
	} {
		p, err := parsePath(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.valueAt(p); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: %q %t", tc.path, got, ok)
		}
		w := newWaiver(goodWaiver(func(w *Waiver) { w.Rule, w.Path, w.Value = "SBX-SEC-002", tc.path, new("x") }), "acme", map[string]*RuleInfo{})
		if !strings.Contains(w.fault, "does not belong in a waiver") {
			t.Errorf("%s: %s", tc.path, w.fault)
		}
	}
}

// What the guide tells people to write is read, and has effect.
func TestTheGuidesWaiverAndFloorWork(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for rest := string(guide); ; {
		_, after, found := strings.Cut(rest, "```yaml\n")
		if !found {
			break
		}
		block, more, _ := strings.Cut(after, "```")
		blocks, rest = append(blocks, block), more
	}
	if len(blocks) != 2 {
		t.Fatalf("the guide has %d blocks of YAML", len(blocks))
	}
	e := load(t, Options{Now: clock, Sources: []Source{source(t, map[string]string{"waivers.yaml": blocks[0]})}})
	in := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
	in.Resource.Network.Egress = append(in.Resource.Network.Egress, Egress{CIDR: new("10.20.0.0/28"), Ports: []int64{443}})
	if v := judge(t, e, in); v.Decision != sandbox.Allow || !slices.Equal(said(v), []string{"SBX-NET-005 waived network.egress[1].cidr"}) {
		t.Errorf("%s %q", v.Decision, said(v))
	}
	setFloor(t, map[string]string{"settings.yaml": blocks[1]})
	if v := judge(t, load(t, Options{}), in); v.Decision != sandbox.Allow || len(v.Findings) > 0 {
		t.Errorf("under the floor: %s %q", v.Decision, said(v))
	}
}

// Whoever carries a waiver, and whatever asks, it is decided by the same code.
func TestEveryCarrierOfAWaiverHasTheSameEffectAtEveryDoor(t *testing.T) {
	private, public := keys(t, algEdDSA)
	for _, c := range []struct {
		name   string
		change func(*Waiver)
		want   sandbox.Decision
	}{
		{"in force", func(*Waiver) {}, sandbox.Waived},
		{"expired", func(w *Waiver) { w.Expires = "2026-11-01" }, sandbox.Deny},
		{"of another value", func(w *Waiver) { w.Value = new("1999") }, sandbox.Deny},
		{"of another target", func(w *Waiver) { w.Target.Name = "node" }, sandbox.Deny},
		{"of another path", func(w *Waiver) { w.Path = "resources" }, sandbox.Deny},
		{"of another rule", func(w *Waiver) { w.Rule = "SBX-RES-003" }, sandbox.Deny},
	} {
		w := goodWaiver(c.change)
		carriers := map[string]Options{
			"a directory":       {Now: clock, Sources: []Source{source(t, map[string]string{"waivers.json": waiversFile(t, w)})}},
			"the configuration": {Now: clock, Waivers: []Waiver{w}},
		}
		if c.name != "expired" { // which is not signed
			b := Bundle{From: bytesOf(signed(t, private, map[string]string{"waivers.json": waiversFile(t, w)})), Key: public}
			carriers["a bundle"] = acme(b)
		}
		for carrier, opts := range carriers {
			e := load(t, opts)
			for _, stage := range stages {
				in := forking()
				in.Stage = stage
				found := judge(t, e, in).Findings
				i := slices.IndexFunc(found, func(f sandbox.Finding) bool { return f.Rule == "SBX-RES-005" })
				if i < 0 || found[i].Effect != c.want {
					t.Errorf("%s, by %s, at %s: %+v", c.name, carrier, stage, found)
				}
			}
		}
	}
}
