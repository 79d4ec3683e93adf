package policy

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// anyIndex stands for every index of a list in a waiver's path.
type anyIndex struct{}

// matches reports whether p, a waiver's path, is the place at.
func (p path) matches(at path) bool {
	if len(p) != len(at) {
		return false
	}
	for i := range p {
		_, index := at[i].(int)
		if _, open := p[i].(anyIndex); !(open && index) && p[i] != at[i] {
			return false
		}
	}
	return true
}

// valueAt is the text of the value that a finding at p is about, as a waiver
// binds it. ok is false when there is none that could be bound: it is not known
// yet, or the document does not hold it.
func (s *subject) valueAt(p path) (text string, ok bool) {
	for _, h := range s.hidden {
		if h.secret == "" && (h.at.meets(append(path{"resource"}, p...)) || h.origin == p.String()) {
			return "", false
		}
	}
	if name, one := envName(p); one || len(p) == 1 && p[0] == "env" {
		values := map[string]any{}
		for _, e := range s.resource.Env {
			values[e.Name] = e.Value
		}
		for _, u := range s.unknown {
			if u.meets(p) {
				return "", false
			}
		}
		if one {
			return textOf(values[name]), true
		}
		return textOf(values), true
	}
	raw, err := json.Marshal(s.resource)
	if err != nil {
		return "", false
	}
	node, err := decode(raw)
	if err != nil {
		return "", false
	}
	for i, step := range p {
		switch n := node.(type) {
		case map[string]any:
			key, named := step.(string)
			child, exists := n[key]
			if !named || !exists && !(i == 1 && freeKeys[p[0]]) {
				return "", false
			}
			node = child
		case []any:
			index, numbered := step.(int)
			if !numbered || index < 0 || index >= len(n) {
				return "", false
			}
			node = n[index]
		default:
			return "", false
		}
	}
	if p[0] == "image" && len(p) == 1 {
		switch {
		case s.resource.Image.Ref != nil:
			return *s.resource.Image.Ref, true
		case s.resource.Image.Pinned != nil:
			return "", false // a reference that cannot be parsed is not kept
		}
		return textOf(nil), true
	}
	return textOf(node), true
}

// textOf is how a value is written in a waiver: a text as it is, anything else
// as compact JSON with sorted keys.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return strconv.Quote(err.Error()) // cannot be: v came from JSON
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// decode reads one JSON value, whose numbers stay as they are written.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return v, nil
}
