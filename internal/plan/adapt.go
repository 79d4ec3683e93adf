package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// Adapters read what others describe. They fill in the defaults that the
// other's documentation states, and leave open what it does not.

// words reads a text, nil when there is none.
func (r *reader) words(field string, n node) *string {
	if !r.note(field, n) || n.isNull() || n.str() == "" {
		return nil
	}
	return new(n.str())
}

// option reads a flag, with what a missing one means.
func (r *reader) option(field string, n node, missing *bool) *bool {
	if !r.note(field, n) {
		return nil
	}
	if n.isNull() {
		return missing
	}
	return new(n.bool())
}

// amount reads a number above zero, times a factor; nil when there is none.
func (r *reader) amount(field string, n node, factor float64) *int64 {
	if !r.note(field, n) || n.isNull() || n.str() == "" {
		return nil
	}
	v, err := strconv.ParseFloat(n.str(), 64)
	if err != nil || v <= 0 || v*factor > math.MaxInt64/2 {
		return nil // no number, or one that means no limit
	}
	return new(int64(math.Ceil(v * factor)))
}

// any notes a field that several values make.
func (r *reader) any(field string, nodes ...node) bool {
	at := nodes[0]
	for _, n := range nodes {
		if n.anyUnknown() {
			at = n
			at.unknown = true
			break
		}
	}
	for _, n := range nodes {
		if n.anySecret() {
			at.secret = true
		}
	}
	return r.note(field, at)
}

// settled is a value that was left out of the configuration: unknown only
// because the provider reads its default back after the apply.
func (n node) settled() node {
	if n.isUnknown() && n.omitted {
		n.unknown = nil
	}
	return n
}

// blocks are the blocks of a kind, or the one object in their place.
func blocks(n node) []node {
	var out []node
	for i := range n.len() {
		out = append(out, n.at(i))
	}
	if len(out) == 0 && !n.isNull() && !n.isUnknown() {
		if _, list := n.value.([]any); !list {
			out = append(out, n)
		}
	}
	return out
}

// elements are the members of a set, each with its likeness for its place,
// since a set has no order.
func elements(n node) []node {
	out := blocks(n)
	for i := range out {
		if last := len(out[i].path) - 1; last >= 0 {
			if index, ok := out[i].path[last].(int); ok {
				out[i].path = append(slices.Clone(out[i].path[:last]), like{index, out[i].value})
			}
		}
	}
	return out
}

// like is a step to the element of a set that has this value.
type like struct {
	index int // in the plan's order
	value any
}

// set reads the members of a set of texts; one that is unknown makes all
// unknown.
func (r *reader) set(field string, n node) []string {
	out := r.texts(field, n)
	if out == nil {
		return nil
	}
	for i, e := range elements(n) {
		r.places[fmt.Sprintf("%s[%d]", field, i)] = e.path
	}
	return out
}

// capabilities reads the block that adds and drops them.
func (r *reader) capabilities(block node) (add, drop []string) {
	known := r.note("process.cap_add", block)
	if known = r.note("process.cap_drop", block) && known; !known {
		return nil, nil
	}
	c := first(block)
	return r.set("process.cap_add", c.get("add")), r.set("process.cap_drop", c.get("drop"))
}

// assignments reads texts like NAME=VALUE.
func (r *reader) assignments(field string, n node) []policy.Env {
	if n.anyUnknown() {
		n.unknown = true
	}
	if n.anySecret() {
		n.secret = true
	}
	if !r.note(field, n) {
		return nil
	}
	var out []policy.Env
	for _, e := range elements(n) {
		name, value, _ := strings.Cut(e.str(), "=")
		r.places[fmt.Sprintf("%s[%q]", field, name)] = e.path
		out = append(out, policy.Env{Name: name, Value: value})
	}
	return out
}

// command reads the words that are run.
func (r *reader) command(nodes ...node) []string {
	var out []string
	for _, n := range nodes {
		if n = n.settled(); !r.any("command", n) {
			return nil
		}
		if n.anySecret() {
			r.sensitive = append(r.sensitive, "command")
		}
		for i := range n.len() {
			r.places[fmt.Sprintf("command[%d]", len(out))] = n.at(i).path
			out = append(out, n.at(i).str())
		}
	}
	return out
}

func (r *reader) image(n node) policy.Image { return policy.ImageOf(r.text("image", n)) }

// others is what every foreign container has in common.
func others(backend string) policy.Resource {
	return policy.Resource{Backend: &backend, Trust: new("unstated"), Network: policy.Network{Default: new("allow")}}
}
