package policy

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func judgeGraph(t testing.TB, e *Engine, nodes ...Node) sandbox.Verdict {
	t.Helper()
	v, err := e.JudgeGraph(t.Context(), Graph{Stage: StageFile, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhichSchedulesSweepWhat(t *testing.T) {
	nightly := Node{Kind: KindReaperSchedule, Name: "nightly"}
	byLabel := Node{Kind: KindReaperSchedule, Name: "ml", Labels: map[string]string{"team": "ml"}}
	template := Node{Kind: KindTemplate, Reaper: new("nightly")}
	with := func(n Node, change func(*Node)) Node { change(&n); return n }
	for _, tc := range []struct {
		name      string
		schedules []Node
		node      Node
		want      string
	}{
		{"one of its name", []Node{nightly}, template, ""},
		{"none", nil, template, "deny"},
		{"one of another name", []Node{byLabel}, template, "deny"},
		{"one by its labels", []Node{byLabel}, with(template, func(n *Node) { n.Labels = map[string]string{"team": "ml", "x": "y"} }), ""},
		{"one by labels that it has with other values", []Node{byLabel}, with(template, func(n *Node) { n.Labels = map[string]string{"team": "web"} }), "deny"},
		{"one with labels is not found by its name", []Node{byLabel}, with(template, func(n *Node) { n.Reaper = new("ml") }), "deny"},
		{"a dry run", []Node{with(nightly, func(n *Node) { n.DryRun = new(true) })}, template, "warn"},
		{"a dry run beside a real one", []Node{with(nightly, func(n *Node) { n.DryRun = new(true) }), nightly}, template, ""},
		{"one of another backend", []Node{with(nightly, func(n *Node) { n.Backend = new("east") })}, with(template, func(n *Node) { n.Backend = new("west") }), "deny"},
		{"one of the same backend", []Node{with(nightly, func(n *Node) { n.Backend = new("east") })}, with(template, func(n *Node) { n.Backend = new("east") }), ""},
		{"an owned sandbox needs none", nil, Node{Kind: KindSandbox, Reaper: new("nope"), Detached: new(false)}, ""},
		{"a detached sandbox needs one", nil, Node{Kind: KindSandbox, Reaper: new("nope"), Detached: new(true)}, "deny"},
		{"no reaper at all is told where it is written", nil, Node{Kind: KindTemplate}, ""},
		{"a container needs none", nil, Node{Kind: KindContainer}, ""},

		{"a reaper that is not known", []Node{nightly}, with(template, func(n *Node) { n.Unknown = []string{"reaper"} }), "unknown"},
		{"a reaper that is not known, and labels that are", []Node{byLabel},
			with(template, func(n *Node) { n.Unknown, n.Labels = []string{"reaper"}, map[string]string{"team": "ml"} }), "unknown"},
		{"a schedule whose name is not known", []Node{with(nightly, func(n *Node) { n.Name = "" })}, template, "unknown"},
		{"a schedule whose name is not known beside the right one", []Node{nightly, with(nightly, func(n *Node) { n.Name = "" })}, template, ""},
		{"a schedule whose backend is not known", []Node{with(nightly, func(n *Node) { n.Unknown = []string{"backend"} })}, template, "unknown"},
		{"a schedule whose labels are not known", []Node{with(nightly, func(n *Node) { n.Unknown = []string{"labels"} })}, template, "unknown"},
		{"a schedule that may be a dry run", []Node{with(nightly, func(n *Node) { n.Unknown = []string{"dry_run"} })}, template, "unknown"},
		{"labels that are not known", []Node{byLabel}, with(template, func(n *Node) { n.Unknown = []string{"labels"} }), "unknown"},
		{"labels that are not known and would not help", nil, with(template, func(n *Node) { n.Unknown = []string{"labels"} }), "deny"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := judgeGraph(t, load(t, Options{}), append(slices.Clone(tc.schedules), tc.node)...)
			got := ""
			for _, f := range v.Findings {
				if f.Rule == "SBX-LIF-001" {
					got += string(f.Effect)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q: %+v", got, tc.want, v.Findings)
			}
		})
	}
}

func TestWhatTenantsShare(t *testing.T) {
	uses := func(tenant string, volumes ...Use) Node {
		return Node{Kind: KindContainer, Tenant: text(tenant), Volumes: volumes}
	}
	rw, ro := Use{Name: "v"}, Use{Name: "v", ReadOnly: true}
	for _, tc := range []struct {
		name  string
		nodes []Node
		want  []string
	}{
		{"two tenants that write", []Node{uses("a", rw), uses("b", rw)}, []string{"deny nodes[0].volumes", "deny nodes[1].volumes"}},
		{"one writes, the other reads", []Node{uses("a", rw), uses("b", ro)}, []string{"deny nodes[0].volumes", "deny nodes[1].volumes"}},
		{"both read", []Node{uses("a", ro), uses("b", ro)}, nil},
		{"one tenant twice", []Node{uses("a", rw), uses("a", rw)}, nil},
		{"nobody's beside somebody's", []Node{uses("", rw), uses("a", rw)}, nil},
		{"volumes of two engines", []Node{uses("a", rw), {Kind: KindContainer, Backend: new("west"), Tenant: new("b"), Volumes: []Use{rw}}}, nil},
		{"twice in one", []Node{uses("a", rw, ro), uses("b", rw)}, []string{"deny nodes[0].volumes", "deny nodes[1].volumes"}},
		{"a tenant that is not known", []Node{uses("a", rw), {Kind: KindContainer, Volumes: []Use{rw}, Unknown: []string{"tenant"}}}, []string{"unknown nodes[1].tenant"}},
		{"a tenant that is not known and uses nothing", []Node{uses("a", rw), {Kind: KindContainer, Unknown: []string{"tenant"}}}, nil},
		{"volumes that are not known", []Node{uses("a"), uses("b"), {Kind: KindContainer, Tenant: new("a"), Unknown: []string{"volumes"}}}, []string{"unknown nodes[2].volumes"}},
		{"what is shared for certain beside what is not known", []Node{uses("a", rw), uses("b", rw), {Kind: KindContainer, Unknown: []string{"networks"}}},
			[]string{"deny nodes[0].volumes", "deny nodes[1].volumes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range judgeGraph(t, load(t, Options{}), tc.nodes...).Findings {
				if f.Rule == "SBX-TEN-004" {
					got = append(got, string(f.Effect)+" "+f.Path)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestANodeIsWhatTheInputSays(t *testing.T) {
	in := Input{
		Kind: KindContainer, Address: "docker_container.a", Name: "n",
		Resource: Resource{
			Backend: new("b"), Labels: map[string]string{"tenant": "t"}, Network: Network{Joined: []string{"net"}},
			Mounts: []Mount{{Type: new("volume"), Source: new("v")}, {Type: new("volume"), Source: new("w"), ReadOnly: new(true)}, {Type: new("bind"), Source: new("/x")}, {Type: new("volume")}},
		},
		Unknown: []string{"network.joined", "mounts[3].source"}, Sensitive: []string{`labels["tenant"]`},
	}
	want := Node{
		Kind: KindContainer, Address: "docker_container.a", Name: "n", Backend: new("b"), Labels: map[string]string{"tenant": "t"}, Tenant: new("t"),
		Volumes: []Use{{Name: "v"}, {Name: "w", ReadOnly: true}}, Networks: []string{"net"}, Unknown: []string{"labels", "networks", "tenant", "volumes"},
	}
	if d := cmp.Diff(want, NodeOf(in)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestAPartialGraphIsNotJudged(t *testing.T) {
	g := Graph{Stage: StagePlan, Partial: true, Nodes: []Node{{Kind: KindTemplate, Reaper: new("nope")}}}
	v, err := load(t, Options{}).JudgeGraph(t.Context(), g)
	if err != nil || v.Decision != sandbox.Allow || len(v.Rules) > 0 {
		t.Errorf("%v %s %q", err, v.Decision, v.Rules)
	}
}

func TestAMalformedGraphIsAnError(t *testing.T) {
	for _, g := range []Graph{{}, {Stage: "someday"}, {Stage: StageFile, Nodes: []Node{{Unknown: []string{"place"}}}}} {
		v, err := load(t, Options{}).JudgeGraph(t.Context(), g)
		if !errors.Is(err, driver.CodeInvalid) || v.Decision != sandbox.Failed {
			t.Errorf("%+v: %v %s", g, err, v.Decision)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, partial := range []bool{false, true} {
		if v, err := load(t, Options{}).JudgeGraph(ctx, Graph{Stage: StageFile, Partial: partial}); !errors.Is(err, context.Canceled) || v.Decision != sandbox.Failed {
			t.Errorf("cancelled: %v %s", err, v.Decision)
		}
	}
	if _, err := load(t, Options{}).Judge(t.Context(), Input{Kind: KindGraph, Stage: StageFile}); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("a graph as one input: %v", err)
	}
}

func TestFindingsLeadToTheirNode(t *testing.T) {
	g := Graph{Nodes: []Node{{Address: "a"}, {Address: "b"}}}
	n, field, ok := g.Place("nodes[1].reaper")
	if !ok || n.Address != "b" || field != "reaper" {
		t.Errorf("%v %q %t", n, field, ok)
	}
	for _, text := range []string{"", "nodes", "nodes[2].reaper", "reaper", "policy.mode", "nodes.x", "nodes["} {
		if _, _, ok := g.Place(text); ok {
			t.Errorf("%q leads somewhere", text)
		}
	}
}

func TestANodesFindingCanBeWaived(t *testing.T) {
	w := goodWaiver(func(w *Waiver) {
		w.Rule, w.Path, w.Value = "SBX-LIF-001", "reaper", new("nope")
	})
	python, other := Node{Kind: KindTemplate, Name: "python", Reaper: new("nope")}, Node{Kind: KindTemplate, Name: "perl", Reaper: new("nope")}
	v := judgeGraph(t, exempt(t, w), python, other)
	if d := cmp.Diff([]string{"SBX-LIF-001 deny nodes[1].reaper", "SBX-LIF-001 waived nodes[0].reaper"}, said(v)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	python.Reaper = new("nix")
	if v := judgeGraph(t, exempt(t, w), python); v.Decision != sandbox.Deny {
		t.Errorf("another value: %s %q", v.Decision, said(v))
	}
	w.Expires = "2026-11-01"
	python.Reaper = new("nope")
	if v := judgeGraph(t, exempt(t, w), python); v.Decision != sandbox.Deny {
		t.Errorf("an expired waiver: %s %q", v.Decision, said(v))
	}

	// Where the template is judged by itself, the waiver is not called idle.
	w = goodWaiver(func(w *Waiver) { w.Rule, w.Path, w.Value = "SBX-LIF-001", "reaper", new("nightly") })
	in := Input{Kind: KindTemplate, Stage: StageFile, Name: "python", Resource: goodResource()}
	if got := said(judge(t, exempt(t, w), in)); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func FuzzPlace(f *testing.F) {
	f.Add("nodes[1].reaper")
	g := Graph{Nodes: make([]Node, 3)}
	f.Fuzz(func(t *testing.T, s string) {
		if n, field, ok := g.Place(s); ok && n.Kind != "" {
			t.Errorf("%q: %v %q", s, n, field)
		}
	})
}
