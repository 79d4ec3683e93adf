package plan

import (
	"fmt"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// reader reads a resource's values into the policy's words. It remembers which
// attribute each field came from, and which fields are unknown or sensitive.
type reader struct {
	places    map[string][]any
	top       []any
	name      string // of the template, network policy or schedule, if known
	unknown   []string
	sensitive []string
	errs      []error
}

func newReader() *reader { return &reader{places: map[string][]any{}} }

// part is the question about what was read.
func (r *reader) part(k policy.Kind, res policy.Resource) Part {
	return Part{
		Input:  policy.Input{Kind: k, Stage: policy.StageFile, Name: r.name, Resource: res, Unknown: r.unknown, Sensitive: r.sensitive},
		places: r.places, top: r.top,
	}
}

// fail remembers what is wrong. Of a sensitive value only that something is: a
// problem and its fix may repeat it in part, or in another spelling.
func (r *reader) fail(err error) {
	for _, p := range driver.Problems(err) {
		if slices.Contains(r.sensitive, p.Field) {
			r.errs = append(r.errs, driver.Invalid(p.Field, "the value is malformed, and marked as sensitive", "nonsensitive() around it lets it be shown what is wrong"))
			continue
		}
		r.errs = append(r.errs, p)
	}
}

func (r *reader) err() error { return driver.Join(r.errs...) }

// note says that field is n, and reports whether n is known.
func (r *reader) note(field string, n node) bool {
	r.places[field] = n.path
	if n.isUnknown() {
		if !slices.Contains(r.unknown, field) {
			r.unknown = append(r.unknown, field)
		}
		return false
	}
	if n.isSecret() {
		r.sensitive = append(r.sensitive, field)
	}
	return true
}

func (r *reader) text(field string, n node) string {
	r.note(field, n)
	return n.str()
}

func (r *reader) flag(field string, n node) bool {
	r.note(field, n)
	return n.bool()
}

func (r *reader) whole(field string, n node) int64 {
	if !r.note(field, n) {
		return 0
	}
	v, ok := n.int()
	if !ok {
		r.fail(driver.Invalid(field, n.str()+" is not a whole number", "write a whole number"))
	}
	return v
}

// stringMap reads what is known of a map. The places and marks of a member are
// those of field["key"].
func (r *reader) stringMap(field string, n node) map[string]string {
	if !r.note(field, n) {
		return nil
	}
	out := map[string]string{}
	for _, k := range n.keys() {
		out[k] = r.text(fmt.Sprintf("%s[%q]", field, k), n.get(k))
	}
	return out
}

// noteAll is note for a list or set that is known, and may be shown, only if
// every element of it is and may.
func (r *reader) noteAll(field string, n node) bool {
	if n.anyUnknown() {
		n.unknown = true
	}
	if n.anySecret() {
		n.secret = true
	}
	return r.note(field, n)
}

// texts reads a list or set of strings. One unknown element makes the whole
// unknown, since its place among the others is.
func (r *reader) texts(field string, n node) []string {
	if !r.noteAll(field, n) {
		return nil
	}
	var out []string
	for i := range n.len() {
		out = append(out, n.at(i).str())
	}
	return out
}

// ports reads a set of ports; one that is not known makes all of them unknown,
// since without ports a rule would mean the default ones.
func (r *reader) ports(field string, n node) []uint16 {
	if !r.noteAll(field, n) {
		return nil
	}
	var out []uint16
	for i := range n.len() {
		v, _ := n.at(i).int()
		p, err := wish.Port(field, v)
		if err != nil {
			r.fail(err)
			return nil
		}
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// network reads the value of a network policy, in the order it is written.
func (r *reader) network(n node) driver.Network {
	var out driver.Network
	if !r.note("network", n) || n.isNull() {
		return out
	}
	if mode := r.text("network.mode", n.get("mode")); mode != "" {
		m, err := driver.ParseMode(mode)
		r.fail(err)
		out.Mode = m
	}
	out.Learn = r.flag("network.learn", n.get("learn"))
	out.Expose = r.ports("network.expose", n.get("expose"))
	egress := n.get("egress")
	if !r.note("network.egress", egress) {
		return out
	}
	if err := driver.CheckCount("network.egress", egress.len()); err != nil {
		r.fail(err)
		return out
	}
	for i := range egress.len() {
		out.Egress = append(out.Egress, r.rule(fmt.Sprintf("network.egress[%d]", i), egress.at(i)))
	}
	return out
}

func (r *reader) rule(at string, n node) driver.Rule {
	var out driver.Rule
	if !r.note(at, n) {
		return out
	}
	if n.isNull() {
		r.fail(driver.Invalid(at, "a rule is null", "remove it, or give it a host or a cidr"))
		return out
	}
	before := len(r.errs)
	ports := n.get("ports")
	if !ports.isNull() && !ports.isUnknown() && ports.len() == 0 {
		r.fail(wish.NoPorts(at + ".ports"))
	}
	out.Ports = r.ports(at+".ports", ports)
	out.Why = r.text(at+".why", n.get("why"))
	host, cidr := n.get("host"), n.get("cidr")
	if h := r.text(at+".host", host); h != "" {
		a, err := wish.Host(at+".host", h)
		r.fail(err)
		out.Host = a
	}
	if c := r.text(at+".cidr", cidr); c != "" {
		p, err := driver.ParseCIDR(at+".cidr", c)
		r.fail(err)
		out.Prefix = p
	}
	if len(r.errs) == before && !host.isUnknown() && !cidr.isUnknown() {
		r.fail(wish.Rule(at, out))
	}
	return out
}
