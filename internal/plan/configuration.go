package plan

import "strings"

// configuration is the part of a plan's JSON that says how providers are
// configured.
type configuration struct {
	Providers map[string]struct {
		Name        string         `json:"name"`
		FullName    string         `json:"full_name"`
		Alias       string         `json:"alias"`
		Module      string         `json:"module_address"`
		Expressions map[string]any `json:"expressions"`
	}
}

// provider is what the configurations of our provider say of backends. Where
// several say different things, it is not known.
func (c configuration) provider() provider {
	var out provider
	seen := false
	for _, key := range sortedKeys(c.Providers) {
		p := c.Providers[key]
		if p.Name != "sandboxio" && !strings.HasSuffix(p.FullName, "/sandboxio/sandboxio") {
			continue
		}
		value, unknown := map[string]any{}, map[string]any{}
		for name, e := range p.Expressions {
			value[name], unknown[name] = expression(e)
		}
		made := providerOf(node{value: value, unknown: unknown})
		if seen {
			made = made.merge(out)
		}
		out, seen = made, true
	}
	if !seen {
		return providerOf(node{})
	}
	return out
}

// expression is what a plan's JSON tells of an expression: a constant, or
// nested blocks. Anything else is unknown.
func expression(e any) (value, unknown any) {
	switch t := e.(type) {
	case []any:
		values, unknowns := make([]any, len(t)), make([]any, len(t))
		for i := range t {
			values[i], unknowns[i] = expression(t[i])
		}
		return values, unknowns
	case map[string]any:
		if c, ok := t["constant_value"]; ok {
			return c, nil
		}
		if _, ok := t["references"]; ok {
			return nil, true // what it makes of them is not told
		}
		values, unknowns := map[string]any{}, map[string]any{}
		for name, inner := range t {
			values[name], unknowns[name] = expression(inner)
		}
		return values, unknowns
	}
	return nil, true
}
