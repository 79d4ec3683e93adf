package policy

import "slices"

// cover says of every template and detached sandbox whether a schedule sweeps
// what is made from it, and gives the nodes of which that is not known yet.
func (g Graph) cover(out []nodeDocument) (open []int) {
	schedules := slices.DeleteFunc(slices.Clone(g.Nodes), func(n Node) bool { return n.Kind != KindReaperSchedule })
	for i, n := range g.Nodes {
		if n.Kind != KindTemplate && (n.Kind != KindSandbox || n.knows("detached") && n.Detached != nil && !*n.Detached) {
			continue
		}
		dry, unsure := false, !n.knows("reaper") || !n.knows("detached")
		out[i].Coverage = new("none")
		for _, s := range schedules {
			switch sweeps(s, n) {
			case no:
			case yes:
				dry = dry || s.DryRun != nil && *s.DryRun
				if s.DryRun == nil || !*s.DryRun {
					out[i].Coverage = new("swept")
				}
			case maybe:
				unsure = true
			}
		}
		if *out[i].Coverage == "swept" {
			continue
		}
		if dry {
			out[i].Coverage = new("dry-run")
		}
		if unsure {
			open = append(open, i)
		}
	}
	return open
}

type answer uint8

const (
	no answer = iota
	maybe
	yes
)

// sweeps reports whether the schedule s finds the sandboxes of n: by its
// labels, or, without any, by its name.
func sweeps(s, n Node) answer {
	sure := s.knows("backend") && n.knows("backend") && s.knows("dry_run") && s.knows("labels")
	if s.knows("backend") && n.knows("backend") && s.Backend != nil && n.Backend != nil && *s.Backend != *n.Backend {
		return no
	}
	if len(s.Labels) == 0 && s.knows("labels") {
		if s.Name == "" || !n.knows("reaper") {
			return maybe
		}
		if n.Reaper == nil || *n.Reaper != s.Name {
			return no
		}
	}
	for k, v := range s.Labels {
		if have, ok := n.Labels[k]; ok && have == v {
			continue
		}
		if n.knows("labels") {
			return no
		}
		sure = false
	}
	if !sure {
		return maybe
	}
	return yes
}

// share finds what nodes of several tenants use, if one of them can write to
// it, and gives the places that may turn out to add to that. Nodes without
// a tenant are nobody's in particular.
func (g Graph) share() (out []sharing, open []path) {
	type thing struct {
		kind                 Kind
		backend, field, name string
	}
	type users struct {
		nodes    []int64
		tenants  map[string]bool
		writable bool
	}
	used := map[thing]*users{}
	var order []thing
	tenants := map[string]bool{}
	for i, n := range g.Nodes {
		if n.knows("tenant") && n.Tenant != nil {
			tenants[*n.Tenant] = true
		}
		uses := slices.Clone(n.Volumes)
		for _, name := range n.Networks {
			uses = append(uses, Use{Name: name})
		}
		for j, u := range uses {
			t := thing{kind: n.Kind, field: "volumes", name: u.Name}
			if j >= len(n.Volumes) {
				t.field = "networks"
			}
			if n.Backend != nil {
				t.backend = *n.Backend
			}
			if used[t] == nil {
				used[t] = &users{tenants: map[string]bool{}}
				order = append(order, t)
			}
			of := used[t]
			of.nodes, of.writable = append(of.nodes, int64(i)), of.writable || !u.ReadOnly
			if n.knows("tenant") && n.Tenant != nil {
				of.tenants[*n.Tenant] = true
			}
		}
	}
	out = []sharing{}
	for _, t := range order {
		if of := used[t]; of.writable && len(of.tenants) > 1 {
			out = append(out, sharing{Field: t.field, Name: t.name, Nodes: slices.Compact(of.nodes), Tenants: int64(len(of.tenants))})
		}
	}
	for i, n := range g.Nodes {
		if !n.knows("tenant") && len(n.Volumes)+len(n.Networks) > 0 && len(tenants) > 0 {
			open = append(open, path{"nodes", i, "tenant"})
		}
		for _, field := range []string{"volumes", "networks"} {
			if !n.knows(field) && len(tenants) > 1 {
				open = append(open, path{"nodes", i, field})
			}
		}
	}
	return out, open
}
