package review

import (
	"context"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// node is a resource as rules over the whole plan see it, and the way back to
// where it was written.
type node struct {
	policy.Node
	item plan.Item
	part plan.Part
}

// fields say where in a resource the fields of a node come from.
var fields = map[string]string{"reaper": "reaper", "labels": "labels", "volumes": "mounts", "networks": "network.joined", "tenant": "labels", "dry_run": "schedule.dry_run", "backend": "backend"}

// nodeOf is the node of a part; ok is false for what no such rule asks about.
func nodeOf(item plan.Item, part plan.Part) (node, bool) {
	if part.Only != "" || part.Input.Kind == policy.KindImage || part.Input.Kind == policy.KindProvider || part.Input.Kind == policy.KindNetworkPolicy {
		return node{}, false
	}
	n := node{Node: policy.NodeOf(part.Input), item: item}
	n.part = part.Slim("reaper", "labels", "mounts", "network.joined", "schedule.dry_run", "backend")
	n.item.Parts = nil
	return n, true
}

// judgeTogether asks the rules that no resource can answer alone.
func judgeTogether(ctx context.Context, p *plan.Plan, e *policy.Engine, nodes []node, o Options) (a answer) {
	if len(nodes) == 0 {
		return a
	}
	g := policy.Graph{Stage: policy.StageFile, Partial: p.Seen().Partial}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, n.Node)
	}
	v, err := e.JudgeGraph(ctx, g)
	if err != nil {
		return answer{err: err}
	}
	a.rules = v.Rules
	index := map[string]int{}
	for i, n := range nodes {
		index[n.Address] = i
	}
	for _, f := range v.Findings {
		n, field, ok := g.Place(f.Path)
		if !ok {
			a.findings = append(a.findings, settings(f))
			continue
		}
		own := nodes[index[n.Address]]
		first, rest := field, ""
		if cut := strings.IndexAny(field, ".["); cut >= 0 {
			first, rest = field[:cut], field[cut:]
		}
		if known, ok := fields[first]; ok {
			first = known
		}
		a.findings = append(a.findings, told(p, own.item, own.part, f, first+rest, o))
	}
	return a
}
