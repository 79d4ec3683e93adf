package policy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// badResource breaks rules of every severity.
func badResource() Resource {
	r := goodResource()
	r.Image = ImageOf("python:3.12")
	r.Profile = new("compat")
	r.Reaper = nil
	r.Resources.PIDs = nil
	r.Network.Egress = []Egress{{CIDR: new("0.0.0.0/0")}, {CIDR: new("169.254.169.254")}}
	r.Env = append(r.Env, Env{Name: "AWS_SECRET_ACCESS_KEY", Value: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"})
	return r
}

func TestFindingsAreSortedWorstFirst(t *testing.T) {
	v := judge(t, load(t, Options{}), Input{Kind: KindTemplate, Stage: StagePlan, Resource: badResource()})
	var got []string
	for _, f := range v.Findings {
		got = append(got, strings.Join([]string{string(f.Effect), f.Severity, f.Rule, f.Path}, " "))
		if f.Title == "" || f.Message == "" || f.Remediation == "" || !strings.HasSuffix(f.Page, f.Rule+".md") {
			t.Errorf("incomplete: %+v", f)
		}
	}
	want := []string{
		"deny critical SBX-NET-002 network.egress[0].cidr",
		"deny critical SBX-NET-004 network.egress[0].cidr",
		"deny critical SBX-NET-004 network.egress[1].cidr",
		"deny high SBX-IMG-001 image",
		"deny high SBX-LIF-001 reaper",
		"deny high SBX-RES-005 resources.pids",
		`deny high SBX-SEC-001 env["AWS_SECRET_ACCESS_KEY"]`,
		`warn critical SBX-SEC-002 env["AWS_SECRET_ACCESS_KEY"]`,
		"warn low SBX-ISO-011 profile",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if v.Decision != sandbox.Deny || v.Policy == "" || !slices.IsSorted(v.Rules) {
		t.Errorf("%s by %s: %q", v.Decision, v.Policy, v.Rules)
	}
}

func TestTheSecondRuleComesBeforeTheTenth(t *testing.T) {
	r := goodResource()
	r.Network.Egress = nil
	var want []string
	for i := range 12 {
		r.Network.Egress = append(r.Network.Egress, Egress{Host: new("*.org")})
		want = append(want, (path{"network", "egress", i, "host"}).String())
	}
	var got []string
	for _, f := range judge(t, load(t, Options{}), Input{Kind: KindNetworkPolicy, Stage: StagePlan, Resource: r}).Findings {
		got = append(got, f.Path)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestAnEvaluationWithoutRulesIsAnError(t *testing.T) { // M163
	e := load(t, Options{})
	s := *e.sets[0].ruleset
	s.rules = slices.DeleteFunc(slices.Clone(s.rules), func(r *rule) bool { return slices.Contains(r.Kinds, KindReaperSchedule) })
	e.sets[0] = newSet(&s, nil)
	v := judge(t, e, Input{Kind: KindReaperSchedule, Stage: StagePlan})
	if v.Decision != sandbox.Failed || v.Findings[0].Rule != failedID {
		t.Errorf("%s %+v", v.Decision, v.Findings)
	}
}

// asked reports whether anybody asks for a judgement of k at s: programs make
// no schedules, and only a plan file has others' resources.
func asked(k Kind, s Stage) bool {
	switch k {
	case KindReaperSchedule:
		return s != StageRuntime
	case KindContainer, KindImage, KindProvider:
		return s == StageFile
	case KindTemplate, KindSandbox, KindNetworkPolicy, KindGraph:
	}
	return true
}

func TestEveryOccasionHasRules(t *testing.T) {
	e := load(t, Options{})
	for _, k := range kinds[:len(kinds)-1] {
		for _, s := range stages {
			if !asked(k, s) {
				continue
			}
			v := judge(t, e, Input{Kind: k, Stage: s, Resource: goodResource()})
			if len(v.Rules) == 0 {
				t.Errorf("no rule judges a %s at %s", k, s)
			}
		}
	}
}

func TestAMalformedInputIsAnErrorWithItsField(t *testing.T) {
	good := Input{Kind: KindTemplate, Stage: StagePlan}
	egress := func(e ...Egress) Input {
		in := good
		in.Resource.Network.Egress = e
		return in
	}
	unknown := func(paths ...string) Input {
		in := good
		in.Resource, in.Unknown = goodResource(), paths
		return in
	}
	ok := Egress{Host: new("example.com")}
	for _, tc := range []struct {
		name, field string
		in          Input
	}{
		{"no kind", "kind", Input{Stage: StagePlan}},
		{"no stage", "stage", Input{Kind: KindTemplate}},
		{"a host that is none", "network.egress[1].host", egress(ok, Egress{Host: new("http://x")})},
		{"a CIDR that is none", "network.egress[1].cidr", egress(ok, Egress{CIDR: new("10.0.0.0/33")})},
		{"a rule without target", "network.egress[1]", egress(ok, Egress{})},
		{"a rule with two targets", "network.egress[0]", egress(Egress{Host: new("example.com"), CIDR: new("10.0.0.0/8")})},
		{"a port that is none", "network.egress[0].ports[1]", egress(Egress{Host: new("example.com"), Ports: []int64{443, 65536}})},
		{"an unknown path that is none", "path", unknown("network..egress")},
		{"an unknown path of nothing", "unknown", unknown("netwrok.egress")},
		{"an unknown field of nothing", "unknown", unknown("resources.memory")},
		{"an unknown rule that is not there", "unknown", unknown("network.egress[7].cidr")},
		{"an unknown part of a scalar", "unknown", unknown("reaper.name")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := load(t, Options{}).Judge(t.Context(), tc.in)
			problems := driver.Problems(err)
			if len(problems) != 1 || problems[0].Code != driver.CodeInvalid || problems[0].Field != tc.field {
				t.Errorf("got %v, want invalid at %s", err, tc.field)
			}
			if v.Decision != sandbox.Failed {
				t.Errorf("the decision is %q", v.Decision)
			}
		})
	}
}

func TestACancelledContextIsReturnedAsItIs(t *testing.T) {
	e := load(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := e.Judge(ctx, Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()})
	if !errors.Is(err, context.Canceled) || v.Decision == sandbox.Allow {
		t.Errorf("%v, %s", err, v.Decision)
	}
}

func TestModeAdviseWarnsAndSaysSo(t *testing.T) {
	e := load(t, Options{Mode: Advise})
	v := judge(t, e, Input{Kind: KindTemplate, Stage: StageApply, Resource: badResource(), Unknown: []string{"lifetime_seconds"}})
	if v.Decision != sandbox.Warn {
		t.Errorf("%s", v.Decision)
	}
	if !slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == weakenedID && f.Path == "policy.mode" }) {
		t.Errorf("%+v", v.Findings)
	}
	if _, err := Load(t.Context(), Options{Mode: 7}); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("mode 7: %v", err)
	}
}

func TestParametersReachTheirRules(t *testing.T) {
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
	in.Resource.Resources.PIDs = new(int64(2000))
	denied := func(v sandbox.Verdict, id string) bool {
		return slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == id })
	}
	if v := judge(t, load(t, Options{}), in); !denied(v, "SBX-RES-005") {
		t.Error("2000 processes pass the default")
	}
	v := judge(t, load(t, Options{Params: map[string]any{"max_pids": 4096}}), in)
	if denied(v, "SBX-RES-005") || !denied(v, weakenedID) || v.Decision != sandbox.Warn {
		t.Errorf("looser: %s %+v", v.Decision, v.Findings)
	}
	v = judge(t, load(t, Options{Params: map[string]any{"max_pids": 64}}), Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()})
	if !denied(v, "SBX-RES-005") || denied(v, weakenedID) {
		t.Errorf("tighter: %+v", v.Findings)
	}
}

func TestParametersThatWouldDoNothingAreRefused(t *testing.T) {
	for name, value := range map[string]any{
		"max_pidz": 10, "max_pids": "10", "max_memory_mib": -1, "max_disk_mib": 1.5, "denied_ports": 22, "allowed_env_names": []any{true},
		"untrusted_floor": "gvisor", "untrusted_multi_tenant_floor": "", "min_prefix_ipv4": nil, "max_cpu_millis": make(chan int),
	} {
		_, err := Load(t.Context(), Options{Params: map[string]any{name: value}})
		problems := driver.Problems(err)
		if len(problems) != 1 || problems[0].Code != driver.CodeInvalid || problems[0].Field != "policy.params."+name {
			t.Errorf("%s = %v: got %v", name, value, err)
		}
	}
}

func TestLooseningIsTold(t *testing.T) {
	for _, tc := range []struct {
		param string
		value any
		loose bool
	}{
		{"max_pids", 1024, false},
		{"max_pids", 1025, true},
		{"min_prefix_ipv4", 24, false},
		{"min_prefix_ipv4", 8, true},
		{"allowed_private_cidrs", []string{}, false},
		{"allowed_private_cidrs", []string{"10.0.0.0/28"}, true},
		{"denied_ports", []int{}, true},
		{"untrusted_floor", "microvm", false},
		{"untrusted_floor", "container", true},
	} {
		e := load(t, Options{Params: map[string]any{tc.param: tc.value}})
		if got := len(e.weak) > 0; got != tc.loose {
			t.Errorf("%s = %v: looser is %t", tc.param, tc.value, got)
		}
	}
}

func TestTheDigestNamesEverythingThatDecides(t *testing.T) {
	set := oneRule(t, teamRule)
	other := oneRule(t, strings.Replace(teamRule, "is no team", "is not a team", 1))
	digests := map[string]Options{}
	for _, opts := range []Options{
		{},
		{Mode: Advise},
		{Params: map[string]any{"max_pids": 64}},
		{Params: map[string]any{"max_pids": 65}},
		{Sources: []Source{set}},
		{Sources: []Source{other}},
	} {
		d := load(t, opts).Digest()
		if prior, ok := digests[d]; ok {
			t.Errorf("%+v and %+v have one digest", prior, opts)
		}
		digests[d] = opts
		if again := load(t, opts).Digest(); again != d || len(d) != len("sha256:")+64 {
			t.Errorf("%s, then %s", d, again)
		}
	}
}

func TestOneEngineJudgesManyAtOnce(t *testing.T) {
	e := load(t, Options{Sources: []Source{oneRule(t, teamRule)}})
	want := judge(t, load(t, Options{Sources: []Source{oneRule(t, teamRule)}}), Input{Kind: KindTemplate, Stage: StagePlan, Resource: badResource()})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			in := Input{Kind: kinds[i%2], Stage: stages[i%4], Resource: badResource()}
			if v, err := e.Judge(t.Context(), in); err != nil || v.Decision != want.Decision {
				t.Errorf("%v %s", err, v.Decision)
			}
		})
	}
	wg.Wait()
}

// TestReadsMissNothing holds the dependency analysis against a plain walk over
// all references, which sees too much but never too little.
func TestReadsMissNothing(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range own.rules {
		seen := 0
		ast.WalkRefs(own.compiler.Modules[r.file], func(ref ast.Ref) bool {
			if ref[0].Equal(ast.InputRootDocument) {
				seen++
				if p := inputPath(ref); !slices.ContainsFunc(r.reads, p.meets) {
					t.Errorf("%s reads %s, which is not among %v", r.ID, p, r.reads)
				}
			}
			return false
		})
		if seen == 0 {
			t.Errorf("%s: no reference to the input", r.ID)
		}
	}
}

func TestTheVerdictHoldsNoValue(t *testing.T) {
	const canary = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	r := badResource()
	r.Labels = map[string]string{"note": "ghp_" + strings.Repeat("a1B2", 9)}
	v := judge(t, load(t, Options{}), Input{Kind: KindTemplate, Stage: StagePlan, Resource: r})
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(slices.Collect(maps.Values(r.Labels)), canary) {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%q is in %s", secret, raw)
		}
	}
}

func TestRulesListsEveryRule(t *testing.T) {
	var ids []string
	for _, r := range load(t, Options{Sources: []Source{oneRule(t, teamRule)}}).Rules() {
		ids = append(ids, r.ID)
	}
	want := []string{"ACME-001"}
	for category, numbers := range map[string]string{
		"IMG": "1 2 3 4", "ISO": "1 2 3 4 5 6 7 8 9 10 11 12", "LIF": "1 2 3 4", "NET": "1 2 3 4 5 6 7 8 9 10 11 12", "POL": "1 2", "PRV": "1",
		"RES": "1 3 4 5 6", "SEC": "1 2 3 4 6", "TEN": "1 4", "WVR": "1 2", // ids are never reused: this list only grows
	} {
		for n := range strings.FieldsSeq(numbers) {
			want = append(want, "SBX-"+category+"-"+("00" + n)[len(n)-1:])
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestACapIsNamedWithItsUnit(t *testing.T) {
	long, fat := int64(259200), int64(1<<20)
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
	in.Resource.LifetimeSeconds, in.Resource.Resources.MemoryMiB = &long, &fat
	said := ""
	for _, f := range judge(t, load(t, Options{}), in).Findings {
		said += f.Message + "\n"
	}
	for _, want := range []string{"259200 s is above the limit of", "1048576 MiB is above the limit of"} {
		if !strings.Contains(said, want) {
			t.Errorf("no finding says %q:\n%s", want, said)
		}
	}
}

func TestAPanicIsAnErrorThatDenies(t *testing.T) {
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
	e := load(t, Options{})
	e.sets[0].prepared[occasion{in.Kind, in.Stage}] = &query{rules: e.sets[0].rules} // nothing is prepared
	v, err := e.Judge(t.Context(), in)
	if err != nil || v.Decision != sandbox.Failed || !strings.Contains(v.Findings[0].Message, "panicked") {
		t.Errorf("inside of an evaluation: %v %s %q", err, v.Decision, said(v))
	}
	e = load(t, Options{})
	e.now = func() time.Time { panic("a value") }
	v, err = e.Judge(t.Context(), in)
	if err != nil || v.Decision != sandbox.Failed || v.Findings[0].Rule != failedID || strings.Contains(v.Findings[0].Message, "a value") {
		t.Errorf("outside of it: %v %s %+v", err, v.Decision, v.Findings)
	}
}
