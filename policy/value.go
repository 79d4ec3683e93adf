package policy

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
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
	if texts, secret := s.texts(p[0]); secret {
		if slices.ContainsFunc(s.unknown, p.meets) {
			return "", false
		}
		return textIn(texts, p[1:])
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

// texts are the values of a field whose values the document does not show:
// variables, build arguments and files by name, words of a command in order.
func (s *subject) texts(field any) (values any, secret bool) {
	byName := func(in []Env) map[string]any {
		out := map[string]any{}
		for _, e := range in {
			out[e.Name] = e.Value
		}
		return out
	}
	switch field {
	case "env":
		return byName(s.resource.Env), true
	case "build_args":
		return byName(s.resource.BuildArgs), true
	case "files":
		return byName(s.resource.Files), true
	case "command":
		return s.resource.Command, true
	}
	return nil, false
}

// textIn is the text of one of the values, or of all of them.
func textIn(values any, p path) (string, bool) {
	if len(p) == 0 {
		return textOf(values), true
	}
	switch v := values.(type) {
	case map[string]any:
		name, ok := p[0].(string)
		text, there := v[name]
		return textOf(text), ok && there && len(p) == 1
	case []string:
		i, ok := p[0].(int)
		if !ok || i < 0 || i >= len(v) || len(p) > 1 {
			return "", false
		}
		return v[i], true
	}
	return "", false
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
	err = decodeInto(raw, &v)
	return v, err
}

func decodeInto(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return io.ErrUnexpectedEOF
	}
	return nil
}
