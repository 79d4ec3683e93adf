package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// Item is one resource under review.
type Item struct {
	Address string // "module.boxes[\"a\"].sandboxio_template.box"
	Type    string
	Parts   []Part // what the policy is asked, in order
	// Unchanged is set when the object exists and the configuration says what
	// the state says. The policy then warns instead of denying, as the
	// provider does, so that a rule made stricter stops no unrelated change.
	Unchanged bool
	// Problem is what keeps a part of it from being read. What cannot be
	// judged does not pass.
	Problem error
	// Opaque says what is not known of it, and why: it has no parts, and is not
	// decided. "" is a resource that can be read.
	Opaque string

	// Weakens is where the configuration under review weakens the policy that
	// the provider would judge it by. The review's own policy is not weakened
	// by it.
	Weakens []Weakening

	// Sets are the sets of rules that the provider would ask besides, and that a
	// review asks only when it is told to.
	Sets []Set

	module  []string // names of the calls that lead to its module
	name    string
	secrets redact.Redactor
	source  *Source
}

// Weakening is one such place.
type Weakening struct {
	Field   string // as Part.Attribute and Item.Place take it
	Message string
}

// Set is one such set.
type Set struct {
	Name    string // "" where the configuration does not tell
	Field   string // as Weakening.Field
	Message string
}

// Part is one question to the policy.
type Part struct {
	Input policy.Input
	// Only keeps the findings whose path begins with this word: the rest of the
	// input was not asked about.
	Only string

	places map[string][]any // attribute paths by field in the policy's words
	top    []any            // attribute of every other field; nil is the resource itself
}

// Keep reports whether a finding of this part counts.
func (p Part) Keep(f sandbox.Finding) bool {
	return p.Only == "" || f.Effect == sandbox.Failed || strings.HasPrefix(f.Path, p.Only)
}

// Redact takes the resource's sensitive values out of s.
func (i Item) Redact(s string) string { return i.secrets.String(s) }

// Attribute is what Terraform calls a field of the policy: "network.egress[0]"
// of a template is "network_policy.egress[0]". "" is the resource itself.
func (p Part) Attribute(field string) string { return attribute(p.lookup(field)) }

// Slim is the part with the way back of these fields only, for whoever keeps
// many.
func (p Part) Slim(fields ...string) Part {
	out := Part{Only: p.Only, places: map[string][]any{}, top: p.top}
	for _, f := range fields {
		if at, ok := p.places[f]; ok {
			out.places[f] = at
		}
	}
	return out
}

// Place is where a field of the part was written.
func (i Item) Place(p Part, field string) Place {
	return i.source.find(i.module, i.Type, i.name, p.lookup(field))
}

// lookup is the attribute path for a field, or for the nearest that holds it.
func (p Part) lookup(field string) []any {
	for at := field; at != ""; {
		if found, ok := p.places[at]; ok {
			return found
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			break
		}
		// A quoted key may hold dots and brackets of its own.
		if open := strings.Index(at, `["`); open >= 0 && open < cut && strings.HasSuffix(at, `"]`) {
			cut = open
		}
		at = at[:cut]
	}
	return p.top
}

// attribute writes a path as Terraform does.
func attribute(p []any) string {
	var b strings.Builder
	for i, step := range p {
		switch s := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case !isName(s):
				fmt.Fprintf(&b, "[%q]", s)
			case i > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

// isName reports whether a step needs no quotes; a variable in capitals is
// easier to read with them.
func isName(s string) bool {
	for i, c := range s {
		small := c >= 'a' && c <= 'z' || c == '_'
		if !small && (i == 0 || (c < 'A' || c > 'Z') && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
