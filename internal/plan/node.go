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
	path                   []any // of the attribute, from the resource: strings and ints
}

func (n node) isUnknown() bool { return n.unknown == true }
func (n node) isSecret() bool  { return n.secret == true }
func (n node) isNull() bool    { return n.value == nil && !n.isUnknown() }

// get is a member of an object or a map.
func (n node) get(key string) node {
	known, _ := n.value.(map[string]any)
	return node{known[key], member(n.unknown, key), member(n.secret, key), append(slices.Clip(n.path), key)}
}

// at is an element of a list.
func (n node) at(i int) node {
	var v any
	if known, ok := n.value.([]any); ok && i < len(known) {
		v = known[i]
	}
	return node{v, element(n.unknown, i), element(n.secret, i), append(slices.Clip(n.path), i)}
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

func (n node) bool() bool { v, _ := n.value.(bool); return v }

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
