package policy

import (
	"fmt"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// hidden is a place in the document that rules cannot judge.
type hidden struct {
	at     path   // in the document
	origin string // as the caller named it
	secret string // why a known value is not shown; "" when it is unknown
}

// Why a known value is not shown.
const (
	marked = "is marked as sensitive and not shown to rules; nonsensitive() takes the mark off"
	shaped = "looks like a credential and is not shown to rules"
)

// conceal hides a value that is known, and judged by its facts only.
func (s *subject) conceal(p path, r Resource, why string) error {
	for _, at := range sensitivePlaces(p, r) {
		if err := s.hide(hidden{at: at, origin: p.String(), secret: why}); err != nil {
			return err
		}
	}
	return nil
}

// unknownPlaces are the places in the document that cannot be judged when the
// resource's value at p is unknown: the value, and the facts made from it.
func unknownPlaces(p path, r Resource) []path {
	credentials := []path{{"facts", "credentials"}, {"facts", "userinfo"}}
	place := append(path{"resource"}, p...)
	switch p[0] {
	case "image":
		return []path{{"resource", "image"}}
	case "env":
		if i, ok := indexIn("env", r.Env, p); ok {
			return append(credentials, path{"facts", "env", i})
		}
		return append(credentials, place, path{"facts", "env"})
	case "build_args":
		if i, ok := indexIn("build_args", r.BuildArgs, p); ok {
			return []path{{"facts", "build_args", i}}
		}
		return []path{place, {"facts", "build_args"}}
	case "files":
		if _, ok := indexIn("files", r.Files, p); ok {
			return credentials
		}
		return append(credentials, place)
	case "command":
		return credentials // the words are not in the document
	case "labels", "trust_reason":
		return append(credentials, place)
	case "provider":
		return append(credentials, place, path{"facts", "endpoint"})
	case "mounts":
		return []path{place, element("mounts", p, 1)}
	case "process":
		if p.meets(path{"process", "runtime"}) {
			return []path{place, {"resource", "isolation"}} // which may come from it
		}
	case "network":
		return append([]path{place}, networkFacts(p, credentials)...)
	}
	return []path{place}
}

// indexIn is where the text that p names stands in a field of named texts.
func indexIn(field string, texts []Env, p path) (int, bool) {
	name, ok := nameIn(field, p)
	return slices.IndexFunc(texts, func(e Env) bool { return e.Name == name }), ok
}

// element is the fact about the element that p leads to, whose index is its
// step at, or about all of them.
func element(fact string, p path, at int) path {
	if len(p) <= at {
		return path{"facts", fact}
	}
	return path{"facts", fact, p[at]}
}

func networkFacts(p path, credentials []path) []path {
	var places []path
	if p.meets(path{"network", "publish"}) {
		places = append(places, element("publish", p, 2))
	}
	if !p.meets(path{"network", "egress"}) {
		return places
	}
	if p.meets(path{"network", "egress", anyStep{}, "why"}) {
		places = append(places, credentials...)
	}
	if len(p) > 3 && p[3] == "why" {
		return append(places, path{"facts", "egress", p[2], "explained"})
	}
	if len(p) > 3 && p[3] != "host" && p[3] != "cidr" {
		return places
	}
	return append(places, path{"facts", "share"}, element("egress", p, 2))
}

// sensitivePlaces are the places in the document that show the resource's
// value at p. What was found out about it stays.
func sensitivePlaces(p path, r Resource) []path {
	switch p[0] {
	case "env", "build_args", "files", "command":
		return nil // values are not in the document
	}
	places := []path{append(path{"resource"}, p...)}
	for i := range r.Network.Egress {
		at := path{"network", "egress", i}
		if at.under(p) || p.under(append(at, "host")) || p.under(append(at, "cidr")) {
			places = append(places, path{"facts", "egress", i, "target"})
		}
	}
	return places
}

// partial are facts about the known values, which stay true whatever the
// unknown ones turn out to be: more can only be added.
var partial = []path{{"facts", "credentials"}, {"facts", "userinfo"}, {"facts", "share"}, {"graph", "shared"}}

// hide takes a place out of the document. A place inside a list of plain
// values takes the list with it.
func (s *subject) hide(h hidden) error {
	s.hidden = append(s.hidden, h)
	if slices.ContainsFunc(partial, func(p path) bool { return h.at.under(p) }) {
		return nil
	}
	var node any = s.input
	for i, step := range h.at {
		last := i == len(h.at)-1
		switch n := node.(type) {
		case map[string]any:
			key, ok := step.(string)
			child, exists := n[key]
			if !ok || !exists && !last && !gone(s.hidden, h.at[:i+1]) {
				return missingPlace(h)
			}
			if !exists && !(i == 2 && freeKeys[h.at[1]]) && !gone(s.hidden, h.at[:i+1]) {
				return missingPlace(h)
			}
			if last {
				delete(n, key)
				return nil
			}
			if items, ok := child.([]any); ok && plain(items) {
				delete(n, key)
				s.hidden[len(s.hidden)-1].at = slices.Clone(h.at[:i+1])
				return nil
			}
			node = child
		case []any:
			index, ok := step.(int)
			if !ok || index < 0 || index >= len(n) {
				return missingPlace(h)
			}
			if last {
				n[index] = map[string]any{}
				return nil
			}
			node = n[index]
		case nil:
			return nil // an enclosing place is hidden already
		default:
			return missingPlace(h)
		}
	}
	return nil
}

// gone reports whether p lies in a place that was hidden before the last one.
func gone(all []hidden, p path) bool {
	return slices.ContainsFunc(all[:len(all)-1], func(h hidden) bool { return p.under(h.at) })
}

func plain(items []any) bool {
	return !slices.ContainsFunc(items, func(v any) bool { _, ok := v.(map[string]any); return ok })
}

func missingPlace(h hidden) error {
	return driver.Invalid("unknown", fmt.Sprintf("%q names nothing in the resource", h.origin), "give paths as they stand in "+SchemaID)
}
