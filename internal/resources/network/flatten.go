package network

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Canonical is n in the one form that all comparisons use: rules canonical and
// sorted, ports sorted. Code: invalid.
func Canonical(n driver.Network) (driver.Network, error) {
	rules, err := driver.Canonical(n.Egress)
	n.Egress = rules
	n.Expose = slices.Compact(slices.Sorted(slices.Values(n.Expose)))
	return n, err
}

// Flatten writes a network as a Value.
func Flatten(n driver.Network) Value {
	rules := make([]attr.Value, 0, len(n.Egress))
	for _, r := range n.Egress {
		m := map[string]attr.Value{
			"host": types.StringNull(), "cidr": types.StringNull(), "why": types.StringNull(),
			"ports": types.SetNull(types.Int64Type),
		}
		if r.Host != "" {
			m["host"] = types.StringValue(r.Host)
		} else {
			m["cidr"] = types.StringValue(r.Prefix.String())
		}
		if len(r.Ports) > 0 {
			m["ports"] = portSet(r.Ports)
		}
		if r.Why != "" {
			m["why"] = types.StringValue(r.Why)
		}
		rules = append(rules, types.ObjectValueMust(RuleType.AttrTypes, m))
	}
	return Value{
		Egress: types.ListValueMust(RuleType, rules), Expose: portSet(n.Expose),
		Mode: types.StringValue(n.Mode.String()), Learn: types.BoolValue(n.Learn),
	}
}

// Object is v as one value.
func (v Value) Object() types.Object {
	return types.ObjectValueMust(Types, map[string]attr.Value{"egress": v.Egress, "expose": v.Expose, "mode": v.Mode, "learn": v.Learn})
}

func portSet(ports []uint16) types.Set {
	els := make([]attr.Value, len(ports))
	for i, p := range ports {
		els[i] = types.Int64Value(int64(p))
	}
	return types.SetValueMust(types.Int64Type, els)
}

// Places turns fields of canonical rules into those of the rules they were
// written as.
type Places struct {
	canonical []driver.Rule
	written   map[string]int // the first rule for a target
}

// PlacesOf knows the places of rules as they were written. Rules that have no
// canonical form have none.
func PlacesOf(rules []driver.Rule) Places {
	canonical, err := driver.Canonical(rules)
	if err != nil {
		return Places{}
	}
	p := Places{canonical, make(map[string]int, len(canonical))}
	for i, r := range rules {
		one, _ := driver.Canonical([]driver.Rule{r}) // all of them are well
		if _, ok := p.written[one[0].Target()]; !ok {
			p.written[one[0].Target()] = i
		}
	}
	return p
}

// Written gives for a field of the canonical rules, "network.egress[0].host",
// the same field of the rules as they were written, and every other field as
// it is.
func (p Places) Written(field string) string {
	const prefix = "network.egress["
	rest, ok := strings.CutPrefix(field, prefix)
	digits, rest, closed := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	if !ok || !closed || err != nil || n < 0 || n >= len(p.canonical) {
		return field
	}
	return prefix + strconv.Itoa(p.written[p.canonical[n].Target()]) + "]" + rest
}
