package egress

import (
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Change is the least that turns one rule set into another. Each rule in it is
// canonical and has only the ports that come or go. Reasons written for the
// reader (Why) are no difference.
type Change struct {
	Added   []driver.Rule
	Removed []driver.Rule
}

// Empty reports whether nothing changes.
func (c Change) Empty() bool { return len(c.Added) == 0 && len(c.Removed) == 0 }

// Diff compares two rule sets in any form. Problems are driver.Canonical's.
func Diff(from, to []driver.Rule) (Change, error) {
	from, err := driver.Canonical(from)
	if err != nil {
		return Change{}, err
	}
	to, err = driver.Canonical(to)
	if err != nil {
		return Change{}, err
	}
	return Change{Added: beyond(to, from), Removed: beyond(from, to)}, nil
}

// beyond gives what rules have that others lack, target by target.
func beyond(rules, others []driver.Rule) []driver.Rule {
	ports := make(map[string][]uint16, len(others))
	for _, r := range others {
		ports[r.Target()] = r.Ports
	}
	var out []driver.Rule
	for _, r := range rules {
		known := ports[r.Target()]
		r.Ports = slices.DeleteFunc(slices.Clone(r.Ports), func(p uint16) bool { return slices.Contains(known, p) })
		if len(r.Ports) > 0 {
			out = append(out, r)
		}
	}
	return out
}
