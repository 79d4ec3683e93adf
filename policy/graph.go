package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// KindGraph is everything in a plan at once, for rules that no resource can
// answer alone: whether something sweeps it, and with whom it shares.
const KindGraph Kind = "graph"

// Graph is a plan by the little that such rules need. Paths in findings begin
// with the node, as "nodes[3].reaper"; [Graph.Place] reads them.
type Graph struct {
	Stage   Stage
	Nodes   []Node
	Partial bool // resources may be missing, as in the plan of one of them: nothing is judged
}

// Node is one resource in a graph. [NodeOf] makes it.
type Node struct {
	Kind     Kind              `json:"kind"`
	Address  string            `json:"address"` // of the Terraform resource
	Name     string            `json:"name"`    // as in [Input]; "" = none, or not known
	Backend  *string           `json:"backend"`
	Labels   map[string]string `json:"labels"`
	Reaper   *string           `json:"reaper"`
	Tenant   *string           `json:"tenant"`
	Detached *bool             `json:"detached"`
	DryRun   *bool             `json:"dry_run"`
	Volumes  []Use             `json:"volumes"`
	Networks []string          `json:"networks"`
	Unknown  []string          `json:"unknown"` // fields above that are not known yet, or not to be shown: "reaper", "labels"
}

// Use is a volume as a resource uses it.
type Use struct {
	Name     string `json:"name"`
	ReadOnly bool   `json:"read_only"`
}

// NodeOf is what a graph needs of an input.
func NodeOf(in Input) Node {
	r := in.Resource
	n := Node{
		Kind: in.Kind, Address: in.Address, Name: in.Name, Backend: r.Backend, Labels: r.Labels, Reaper: r.Reaper, Tenant: r.Tenant,
		Detached: r.Detached, DryRun: r.Schedule.DryRun, Networks: r.Network.Joined,
	}
	if tenant, ok := r.Labels["tenant"]; ok && n.Tenant == nil {
		n.Tenant = &tenant
	}
	for _, m := range r.Mounts {
		if m.Type != nil && *m.Type == "volume" && m.Source != nil {
			n.Volumes = append(n.Volumes, Use{*m.Source, m.ReadOnly != nil && *m.ReadOnly})
		}
	}
	for _, text := range slices.Concat(in.Unknown, in.Sensitive) {
		p, err := parsePath(text)
		if err != nil {
			continue // Judge refuses the input
		}
		for field, at := range nodeFields {
			if slices.ContainsFunc(at, p.meets) && !slices.Contains(n.Unknown, field) {
				n.Unknown = append(n.Unknown, field)
			}
		}
	}
	slices.Sort(n.Unknown)
	return n
}

// nodeFields says what of a resource makes each field of a node.
var nodeFields = map[string][]path{
	"backend":  {{"backend"}},
	"labels":   {{"labels"}},
	"reaper":   {{"reaper"}},
	"tenant":   {{"tenant"}, {"labels", "tenant"}},
	"detached": {{"detached"}},
	"dry_run":  {{"schedule", "dry_run"}},
	"volumes":  {{"mounts", anyStep{}, "source"}, {"mounts", anyStep{}, "type"}, {"mounts", anyStep{}, "read_only"}},
	"networks": {{"network", "joined"}},
}

// knows reports whether a field has its value.
func (n Node) knows(field string) bool { return !slices.Contains(n.Unknown, field) }

// Place is the node that a finding is about, and where in it.
func (g Graph) Place(finding string) (n Node, field string, ok bool) {
	p, err := parsePath(finding)
	if err != nil || len(p) < 2 || p[0] != "nodes" {
		return Node{}, "", false
	}
	i, ok := p[1].(int)
	if !ok || i >= len(g.Nodes) {
		return Node{}, "", false
	}
	return g.Nodes[i], p[2:].String(), true
}

// input is what a waiver's target is compared with.
func (n Node) input() Input { return Input{Kind: n.Kind, Name: n.Name, Address: n.Address} }

// valueOf is the value that a finding about a field of n is about, as a waiver
// binds it.
func (n Node) valueOf(field string) (string, bool) {
	values := map[string]any{"reaper": n.Reaper, "volumes": list(n.Volumes), "networks": list(n.Networks)}
	v, ok := values[field]
	if !ok || !n.knows(field) {
		return "", false
	}
	raw, err := json.Marshal(v)
	if err == nil {
		v, err = decode(raw)
	}
	return textOf(v), err == nil
}

// JudgeGraph answers for a whole plan, once. Of a partial graph it answers
// allow, without rules: what is missing might be what a rule looks for. Its
// error is as that of [Engine.Judge].
func (e *Engine) JudgeGraph(ctx context.Context, g Graph) (sandbox.Verdict, error) {
	if g.Partial && ctx.Err() == nil {
		return sandbox.Verdict{Decision: sandbox.Allow, Policy: e.digest, Rules: []string{}, Findings: []sandbox.Finding{}}, nil
	}
	s, err := g.subject()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return sandbox.Verdict{Decision: sandbox.Failed, Policy: e.digest}, err
	}
	v, err := e.judge(ctx, s)
	if err == nil {
		e.exempt.excuseNodes(&v, g, e.now())
		e.conclude(&v)
	}
	return v, err
}

// graphDocument is what rules see of a graph.
type graphDocument struct {
	Nodes  []nodeDocument `json:"nodes"`
	Shared []sharing      `json:"shared"`
}

// nodeDocument is a node less its labels, whose values are nobody's business
// here.
type nodeDocument struct {
	Kind     Kind     `json:"kind"`
	Address  string   `json:"address"`
	Name     *string  `json:"name"` // of a schedule: what others call their reaper
	Backend  *string  `json:"backend"`
	Reaper   *string  `json:"reaper"`
	Tenant   *string  `json:"tenant"`
	Detached *bool    `json:"detached"`
	DryRun   *bool    `json:"dry_run"` // of a schedule
	Volumes  []Use    `json:"volumes"`
	Networks []string `json:"networks"`
	Coverage *string  `json:"coverage"` // "swept", "dry-run" or "none", for what a schedule has to sweep
}

// sharing is what several tenants use, and one of them at least can write to.
type sharing struct {
	Field   string  `json:"field"` // "volumes" or "networks"
	Name    string  `json:"name"`
	Nodes   []int64 `json:"nodes"`
	Tenants int64   `json:"tenants"` // how many
}

func (g Graph) subject() (*subject, error) {
	if !slices.Contains(stages, g.Stage) {
		return nil, driver.Invalid("stage", fmt.Sprintf("%q is no stage", g.Stage), fmt.Sprintf("use one of %q", stages))
	}
	d := graphDocument{Nodes: make([]nodeDocument, len(g.Nodes))}
	var hiding []hidden
	hide := func(origin, at path) { hiding = append(hiding, hidden{at: at, origin: origin.String()}) }
	for i, n := range g.Nodes {
		d.Nodes[i] = nodeDocument{
			Kind: n.Kind, Address: n.Address, Name: text(n.Name), Backend: n.Backend, Reaper: n.Reaper, Tenant: n.Tenant, Detached: n.Detached,
			DryRun: n.DryRun, Volumes: list(n.Volumes), Networks: list(n.Networks),
		}
		for _, field := range n.Unknown {
			if _, ok := nodeFields[field]; !ok {
				return nil, driver.Invalid("unknown", fmt.Sprintf("%q is no field of a node", field), fmt.Sprintf("use some of %q", slices.Sorted(maps.Keys(nodeFields))))
			}
			if field != "labels" { // which are not in the document
				hide(path{"nodes", i, field}, path{"graph", "nodes", i, field})
			}
		}
	}
	for _, i := range g.cover(d.Nodes) {
		hide(path{"nodes", i, "reaper"}, path{"graph", "nodes", i, "coverage"})
	}
	var open []path
	d.Shared, open = g.share()
	for _, p := range open {
		hide(p, path{"graph", "shared"})
	}
	r, err := complete(Resource{}, nil)
	if err != nil {
		return nil, err
	}
	s := &subject{kind: KindGraph, stage: g.Stage, root: "graph"}
	s.input = document{
		Schema: SchemaID, Kind: KindGraph, Stage: g.Stage, Resource: r, Facts: factsOf(r, nil), Graph: &d, Unknown: []string{}, Sensitive: []string{},
	}.plain()
	for _, h := range hiding {
		if err := s.hide(h); err != nil {
			return nil, err
		}
	}
	return s, nil
}
