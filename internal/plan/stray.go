package plan

import (
	"fmt"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// stray is a name in an object that the attribute does not have. Terraform drops
// it, so that only the text tells: { port = 8443 } opens what no ports open.
type stray struct {
	at    []any // the attribute path
	field string
	err   error
}

// strays are the stray names in what was written of a resource, or of the
// provider's block "policy". What a reference stands for is not seen.
func strays(kind string, written node) []stray {
	var out []stray
	var walk func(o wish.Object, n node)
	walk = func(o wish.Object, n node) {
		each, many := o[wish.Each]
		if _, list := n.value.([]any); many && list {
			for i := range n.len() {
				walk(each, n.at(i))
			}
			return
		}
		for _, name := range n.keys() {
			member, known := o[name]
			if many {
				member, known = each, true
			}
			switch m := n.get(name); {
			case !known:
				out = append(out, strayed(kind, o, n, name))
			case member != nil:
				walk(member, m)
			}
		}
	}
	top := wish.Nested(kind)
	for _, name := range top.Names() {
		walk(top[name], written.get(name))
	}
	return out
}

// strayed is one name in n, whose names are o.
func strayed(kind string, o wish.Object, n node, name string) stray {
	at := n.get(name).path
	s := stray{at: at, field: attribute(at)}
	switch kind { // in the policy's words
	case "sandboxio_network_policy":
		s.field = "network." + s.field
	case "sandboxio_template":
		s.field = strings.Replace(s.field, "network_policy", "network", 1)
	case "policy":
		s.field = strings.Replace(s.field, "policy[0]", "policy", 1) // the block
	}
	what := "this object"
	if o.IsRule() {
		what = "a rule"
	}
	problem := fmt.Sprintf("there is no %q in %s, and Terraform drops it without a word", name, what)
	if o.IsRule() && n.get("ports").isNull() {
		problem += "; without ports the rule opens 80 and 443"
	}
	names := strings.Join(o.Names(), ", ")
	fix := "use one of " + names + ", or take it out"
	if meant := o.Meant(name); meant != "" {
		fix = fmt.Sprintf("write %s; the names are %s", meant, names)
	}
	s.err = driver.Invalid(s.field, problem, fix)
	return s
}

// tell says what was found, each once.
func (r *reader) tell(all []stray) {
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s.field] {
			seen[s.field] = true
			r.places[s.field] = s.at
			r.fail(s.err)
		}
	}
}

// written is what the text says of an object, "type.name", as far as it is
// literal.
func (s *Source) written(modules []string, object string) node {
	if s == nil {
		return node{}
	}
	m := s.modules[strings.Join(modules, ".")]
	if m == nil {
		return node{}
	}
	m.parse()
	o := m.objects[object]
	if o == nil {
		return node{}
	}
	value, unknown := bodyValue(o.block.Body)
	return node{value: value, unknown: unknown}
}
