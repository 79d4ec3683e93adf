package plan

import (
	"encoding/json"
	"maps"
	"slices"
)

// node is one value of a resource: what is known of it, which part is not
// known yet, and which is sensitive. The three trees have one shape, where
// "true" in the last two speaks for everything below. Terraform leaves unknown
// values out of the first.
type node struct {
	value, unknown, secret any
	path                   []any // of the attribute, from the resource: strings, ints and likenesses

	config  any  // what a plan tells of the expressions; nil = nothing
	omitted bool // certainly not in the configuration
}

func (n node) isUnknown() bool { return n.unknown == true }
func (n node) isSecret() bool  { return n.secret == true }
func (n node) isNull() bool    { return n.value == nil && !n.isUnknown() }

// get is a member of an object or a map.
func (n node) get(key string) node {
	known, _ := n.value.(map[string]any)
	out := node{value: known[key], unknown: member(n.unknown, key), secret: member(n.secret, key), path: append(slices.Clip(n.path), key)}
	if block, ok := n.config.(map[string]any); ok && !isExpression(block) {
		var there bool
		out.config, there = block[key]
		out.omitted = !there
	}
	return out
}

// at is an element of a list.
func (n node) at(i int) node {
	out := node{unknown: element(n.unknown, i), secret: element(n.secret, i), path: append(slices.Clip(n.path), i)}
	if known, ok := n.value.([]any); ok && i < len(known) {
		out.value = known[i]
	}
	if blocks, ok := n.config.([]any); ok && len(blocks) == n.len() {
		out.config = blocks[i]
	}
	return out
}

// isExpression reports whether a plan tells of an attribute here, rather than
// of a block. An empty object may be either.
func isExpression(m map[string]any) bool {
	_, constant := m["constant_value"]
	_, refers := m["references"]
	return constant || refers || len(m) == 0
}

func member(marks any, key string) any {
	switch m := marks.(type) {
	case map[string]any:
		return m[key]
	case bool:
		return m
	}
	return nil
}

func element(marks any, i int) any {
	switch m := marks.(type) {
	case []any:
		if i < len(m) {
			return m[i]
		}
	case bool:
		return m
	}
	return nil
}

// len is the number of elements, known or not.
func (n node) len() int {
	known, _ := n.value.([]any)
	pending, _ := n.unknown.([]any)
	return max(len(known), len(pending))
}

// keys are the members' names, known or not, sorted.
func (n node) keys() []string {
	known, _ := n.value.(map[string]any)
	pending, _ := n.unknown.(map[string]any)
	out := slices.Collect(maps.Keys(known))
	for k, v := range pending {
		if _, ok := known[k]; !ok && hasTrue(v) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// anyUnknown reports whether a part of it is unknown.
func (n node) anyUnknown() bool { return hasTrue(n.unknown) }

// anySecret reports whether a part of it is sensitive.
func (n node) anySecret() bool { return hasTrue(n.secret) }

func hasTrue(tree any) bool {
	switch t := tree.(type) {
	case bool:
		return t
	case []any:
		return slices.ContainsFunc(t, hasTrue)
	case map[string]any:
		for _, v := range t {
			if hasTrue(v) {
				return true
			}
		}
	}
	return false
}

func (n node) str() string {
	switch v := n.value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}

// bool is a flag. Terraform takes two texts for true as well, and of a
// configuration they are seen before it has made a flag of them.
func (n node) bool() bool { return n.value == true || n.value == "true" || n.value == "1" }

// int is a whole number; ok is false for anything else that is not null.
func (n node) int() (v int64, ok bool) {
	switch x := n.value.(type) {
	case nil:
		return 0, true
	case json.Number:
		v, err := x.Int64()
		return v, err == nil
	}
	return 0, false
}

// secrets collects the texts of everything sensitive.
func secrets(value, secret any, out *[]string) {
	switch s := secret.(type) {
	case bool:
		if s {
			texts(value, out)
		}
	case []any:
		v, _ := value.([]any)
		for i := range min(len(s), len(v)) {
			secrets(v[i], s[i], out)
		}
	case map[string]any:
		v, _ := value.(map[string]any)
		for k := range s {
			secrets(v[k], s[k], out)
		}
	}
}

func texts(value any, out *[]string) {
	switch v := value.(type) {
	case string:
		*out = append(*out, v)
	case json.Number:
		*out = append(*out, v.String())
	case []any:
		for _, e := range v {
			texts(e, out)
		}
	case map[string]any:
		for k, e := range v {
			*out = append(*out, k) // names in a sensitive map are as sensitive
			texts(e, out)
		}
	}
}
