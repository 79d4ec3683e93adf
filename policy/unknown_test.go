package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func effects(v sandbox.Verdict) map[string]sandbox.Decision {
	out := map[string]sandbox.Decision{}
	for _, f := range v.Findings {
		out[f.Rule+" "+f.Path] = f.Effect
	}
	return out
}

func TestAnUnknownValueIsNeitherMissingNorDefault(t *testing.T) { // M164, M165
	e := load(t, Options{})
	for _, tc := range []struct {
		name    string
		change  func(*Resource)
		unknown []string
		want    map[string]sandbox.Decision
	}{
		{
			name:    "what is null and unknown is not reported as missing",
			change:  func(r *Resource) { r.Resources.PIDs = nil },
			unknown: []string{"resources.pids"},
			want:    map[string]sandbox.Decision{"SBX-RES-005 resources.pids": sandbox.Unknown},
		},
		{
			name:    "what has a good default and is unknown does not pass",
			change:  func(*Resource) {},
			unknown: []string{"resources.pids"},
			want:    map[string]sandbox.Decision{"SBX-RES-005 resources.pids": sandbox.Unknown},
		},
		{
			name:    "what has a bad default and is unknown is not denied",
			change:  func(r *Resource) { r.Resources.PIDs = new(int64(-1)) },
			unknown: []string{"resources.pids"},
			want:    map[string]sandbox.Decision{"SBX-RES-005 resources.pids": sandbox.Unknown},
		},
		{
			name:    "an unknown reaper is no missing reaper",
			change:  func(r *Resource) { r.Reaper = nil },
			unknown: []string{"reaper"},
			want:    map[string]sandbox.Decision{"SBX-LIF-001 reaper": sandbox.Unknown},
		},
		{
			name:    "one unknown rule of the network leaves the others judged",
			change:  func(r *Resource) { r.Network.Egress = []Egress{{}, {Host: new("*.org")}} },
			unknown: []string{"network.egress[0].host"},
			want: map[string]sandbox.Decision{
				"SBX-NET-003 network.egress[1].host": sandbox.Deny, "SBX-NET-002 network.egress[0].host": sandbox.Unknown,
				"SBX-NET-004 network.egress[0].host": sandbox.Unknown, "SBX-NET-005 network.egress[0].host": sandbox.Unknown,
				"SBX-NET-006 network.egress[0].host": sandbox.Unknown, "SBX-NET-007 network.egress[0].host": sandbox.Unknown,
				"SBX-NET-008 network.egress[0].host": sandbox.Unknown, "SBX-NET-009 network.egress[0].host": sandbox.Unknown,
			},
		},
		{
			name:    "an unknown comment is read by those who look for secrets, and for a reason",
			change:  func(*Resource) {},
			unknown: []string{"network.egress[0].why"},
			want: map[string]sandbox.Decision{
				"SBX-SEC-002 network.egress[0].why": sandbox.Unknown, "SBX-SEC-004 network.egress[0].why": sandbox.Unknown,
				"SBX-NET-008 network.egress[0].why": sandbox.Unknown,
			},
		},
		{
			name:    "one unknown port takes the ports with it",
			change:  func(r *Resource) { r.Network.Egress[0].Ports = []int64{22, 443} },
			unknown: []string{"network.egress[0].ports[1]"},
			want: map[string]sandbox.Decision{
				"SBX-NET-010 network.egress[0].ports[1]": sandbox.Unknown, "SBX-NET-011 network.egress[0].ports[1]": sandbox.Unknown,
			},
		},
		{
			name:    "an unknown value of a variable that the model left out",
			change:  func(*Resource) {},
			unknown: []string{`env["API_TOKEN"]`},
			want: map[string]sandbox.Decision{
				`SBX-SEC-001 env["API_TOKEN"]`: sandbox.Unknown, `SBX-SEC-002 env["API_TOKEN"]`: sandbox.Unknown, `SBX-SEC-004 env["API_TOKEN"]`: sandbox.Unknown,
			},
		},
		{
			name:    "known variables are judged beside unknown ones",
			change:  func(r *Resource) { r.Env = []Env{{Name: "B", Value: "AKIAABCDEFGHIJKLMNOP"}} },
			unknown: []string{`env["A"]`},
			want: map[string]sandbox.Decision{
				`SBX-SEC-001 env["A"]`: sandbox.Unknown, `SBX-SEC-002 env["B"]`: sandbox.Deny, `SBX-SEC-004 env["A"]`: sandbox.Unknown,
			},
		},
		{
			name:    "a value that nobody reads may be unknown",
			change:  func(*Resource) {},
			unknown: []string{"network.mode", "network.learn", "secrets"},
			want:    map[string]sandbox.Decision{},
		},
		{
			name:    "unknown inside unknown",
			change:  func(*Resource) {},
			unknown: []string{"resources", "resources.pids"},
			want: map[string]sandbox.Decision{
				"SBX-RES-003 resources": sandbox.Unknown, "SBX-RES-004 resources": sandbox.Unknown, "SBX-RES-005 resources": sandbox.Unknown,
				"SBX-RES-005 resources.pids": sandbox.Unknown, "SBX-RES-006 resources": sandbox.Unknown,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := goodResource()
			tc.change(&r)
			in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: r, Unknown: tc.unknown}
			if d := cmp.Diff(tc.want, effects(judge(t, e, in))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, late := range []Stage{StageApply, StageRuntime} {
				in.Kind, in.Stage = KindTemplate, late
				for at, effect := range effects(judge(t, e, in)) {
					if effect != sandbox.Deny {
						t.Errorf("%s: %s is %s", late, at, effect)
					}
				}
			}
		})
	}
}

func TestASensitiveValueReachesNoRule(t *testing.T) {
	const canary = "canary-9f2c.example"
	r := goodResource()
	r.Network.Egress = []Egress{{Host: new(canary), Why: new("canary-why")}}
	r.Labels = map[string]string{"note": "canary-label"}
	r.TrustReason = new("canary-reason")
	r.Env = []Env{{Name: "A", Value: "canary-env"}}
	for _, sensitive := range [][]string{
		{"network.egress[0].host", "network.egress[0].why", `labels["note"]`, "trust_reason", `env["A"]`},
		{"network.egress[0]", "labels", "trust_reason", "env"},
		{"network.egress", "labels", "trust_reason", "env"},
		{"network", "labels", "trust_reason"},
	} {
		in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: r, Sensitive: sensitive}
		s, err := newSubject(in)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(s.input)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "canary") {
			t.Errorf("%q: %s", sensitive, raw)
		}
		v := judge(t, load(t, Options{}), in)
		if v.Decision != sandbox.Unknown {
			t.Errorf("%q: a rule that needs it answers %s", sensitive, v.Decision)
		}
	}
}

func TestSensitiveVariablesAreStillJudged(t *testing.T) {
	r := goodResource()
	r.Env = []Env{{Name: "A", Value: "AKIAABCDEFGHIJKLMNOP"}}
	v := judge(t, load(t, Options{}), Input{Kind: KindTemplate, Stage: StageApply, Resource: r, Sensitive: []string{"env"}})
	want := map[string]sandbox.Decision{`SBX-SEC-002 env["A"]`: sandbox.Deny}
	if d := cmp.Diff(want, effects(v)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestWhatIsUnknownIsAbsentAndAllElsePresent(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Properties struct {
			Resource struct {
				Properties map[string]any `json:"properties"`
			} `json:"resource"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &want); err != nil {
		t.Fatal(err)
	}
	s, err := newSubject(Input{Kind: KindReaperSchedule, Stage: StagePlan, Unknown: []string{"image", "schedule.cron"}})
	if err != nil {
		t.Fatal(err)
	}
	resource, ok := s.input["resource"].(map[string]any)
	if !ok {
		t.Fatalf("%v", s.input)
	}
	for name := range want.Properties.Resource.Properties {
		if _, there := resource[name]; there == (name == "image") {
			t.Errorf("%s: present is %t", name, there)
		}
	}
	for _, name := range []string{"env", "secrets"} {
		if items, ok := resource[name].([]any); !ok || len(items) != 0 {
			t.Errorf("%s is %v", name, resource[name])
		}
	}
	schedule, ok := resource["schedule"].(map[string]any)
	if _, there := schedule["cron"]; !ok || there || len(schedule) != 3 {
		t.Errorf("schedule is %v", schedule)
	}
}

func TestPathsReadBack(t *testing.T) {
	for _, text := range []string{"image", "network.egress[2].cidr", `env["TOKEN"]`, `env["a.b[0]"]`, `env["lower"]`, `labels["x\"y"]`, "network.egress[0].ports[1]"} {
		p, err := parsePath(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %v %q", text, err, p)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[-1]", `a["x]`, `a["x"`, "a[0]b", "a[99999999999]", `a["x"]b`} {
		if p, err := parsePath(text); err == nil {
			t.Errorf("%q is taken for %q", text, p)
		}
	}
}

func TestPathsMeet(t *testing.T) {
	for _, tc := range []struct {
		p, q         string
		meets, under bool
	}{
		{"network.egress[0].cidr", "network.egress[0].cidr", true, true},
		{"network.egress[0].cidr", "network.egress", true, true},
		{"network.egress", "network.egress[0].cidr", true, false},
		{"network.egress[0].cidr", "network.egress[1].cidr", false, false},
		{"network.egress[0].cidr", "network.egress[0].host", false, false},
	} {
		p, _ := parsePath(tc.p)
		q, _ := parsePath(tc.q)
		if p.meets(q) != tc.meets || q.meets(p) != tc.meets || p.under(q) != tc.under {
			t.Errorf("%s and %s: meets %t, under %t", p, q, p.meets(q), p.under(q))
		}
	}
	wild := path{"network", "egress", anyStep{}, "cidr"}
	for text, want := range map[string]bool{"network.egress[3].cidr": true, "network": true, "network.egress[3].host": false} {
		if p, _ := parsePath(text); p.meets(wild) != want {
			t.Errorf("%s and %s", p, wild)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"image", `env["A"].value`, "network.egress[2].cidr", `a["\u00e9"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePath(s)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		if err != nil || !slices.Equal(p, again) {
			t.Errorf("%q is %q, then %q: %v", s, p, again, err)
		}
	})
}

// FuzzJudge holds that nothing in a resource makes a judgement pass by
// breaking it: there is a verdict with rules, or an error.
func FuzzJudge(f *testing.F) {
	f.Add("example.com", "", "A", "b", "network.egress[0].host", int64(443), int64(3600))
	f.Add("", "::ffff:10.0.0.1/104", "TOKEN", "", `env["X"]`, int64(22), int64(-1))
	f.Add("*.com.", "1.2.3.4", "", "\x00", "image", int64(0), int64(0))
	e := load(f, Options{})
	f.Fuzz(func(t *testing.T, host, cidr, name, value, unknown string, port, n int64) {
		r := goodResource()
		r.Network.Egress = []Egress{{Host: text(host), CIDR: text(cidr), Ports: []int64{port}, Why: &value}}
		r.Env = []Env{{Name: name, Value: value}}
		r.Labels = map[string]string{name: value}
		r.LifetimeSeconds, r.Image = &n, ImageOf(value)
		in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: r}
		if unknown != "" {
			in.Unknown = []string{unknown}
		}
		c := goodContainer()
		c.Image, c.Restart, c.Command, c.Files = r.Image, &value, []string{value, host}, r.Env
		c.Process.User, c.Process.Runtime, c.Process.CapAdd, c.Process.Sysctls = &value, &name, []string{name}, []string{value}
		c.Mounts = []Mount{{Type: text(name), Source: &value, Propagation: &host}}
		c.Network = Network{Default: &name, Publish: []Publish{{Port: &port, HostIP: &cidr}}, DNS: []string{host}}
		c.Provider.Endpoint = &value
		for _, in := range []Input{in, {Kind: KindContainer, Stage: StageFile, Resource: c, Unknown: in.Unknown}} {
			v, err := e.Judge(t.Context(), in)
			if err != nil {
				if v.Decision != sandbox.Failed {
					t.Errorf("%v, yet %s", err, v.Decision)
				}
				continue
			}
			if v.Decision == sandbox.Failed || len(v.Rules) == 0 {
				t.Errorf("%s %+v", v.Decision, v.Findings)
			}
		}
	})
}
