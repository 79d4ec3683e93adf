package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads one document of YAML, of which JSON is a part. A key that
// stands twice is refused, and a date stays the text that it was written as.
func readYAML(raw []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("there is nothing in it")
		}
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("there is more than one document"), err)
	}
	datesAreTexts(&doc)
	return &doc, nil
}

// into decodes a node by the JSON tags of v, without fields that v has not. Its
// errors name the line.
func into(n *yaml.Node, v any) error {
	var plain any
	if err := n.Decode(&plain); err != nil {
		return err
	}
	raw, err := json.Marshal(plain)
	if err != nil { // which has keys that are no texts, or numbers without end
		return fmt.Errorf("yaml: line %d: there is a key that is no text, or a value that JSON cannot hold", max(oddNode(n).Line, 1))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return atLine(n, d.Decode(v))
}

// oddNode is the first place in n that JSON has nothing like; n itself where
// none is found.
func oddNode(n *yaml.Node) *yaml.Node {
	for i, c := range n.Content {
		tag := c.ShortTag()
		key := n.Kind == yaml.MappingNode && i%2 == 0
		switch {
		case key && tag != "!!str" && tag != "!!merge":
			return c
		case tag == "!!float" && slices.Contains([]string{".inf", ".nan"}, strings.ToLower(strings.TrimLeft(c.Value, "+-"))):
			return c
		}
		if odd := oddNode(c); odd != c {
			return odd
		}
	}
	return n
}

var unknownField = regexp.MustCompile(`unknown field "(.*)"`)

// atLine is an error of encoding/json in the words of whoever wrote YAML, with
// the line that it is about.
func atLine(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	line, said := lineOf(n, err)
	return fmt.Errorf("yaml: line %d: %s", line, said)
}

// lineOf is the two parts of atLine.
func lineOf(n *yaml.Node, err error) (line int, said string) {
	said, field := strings.TrimPrefix(err.Error(), "json: "), ""
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		field = wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]
		said = fmt.Sprintf("%s cannot be of the kind %s", cmp.Or(field, "this"), wrong.Value)
	case unknownField.MatchString(said):
		field = unknownField.FindStringSubmatch(said)[1]
	}
	line = max(n.Line, 1)
	if key := keyNode(n, field); key != nil {
		line = key.Line
	}
	return line, said
}

// keyNode is the first key of that name below n.
func keyNode(n *yaml.Node, name string) *yaml.Node {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Value == name {
				return c
			}
			continue
		}
		if found := keyNode(c, name); found != nil {
			return found
		}
	}
	return nil
}

// member is what a document, a mapping or a list has under a key or at an
// index, and the line where that begins; nil = nothing.
func member(n *yaml.Node, key string) (*yaml.Node, int) {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	}
	if i, err := strconv.Atoi(key); err == nil && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
		return n.Content[i], n.Content[i].Line
	}
	return nil, 0
}

func datesAreTexts(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content { // an alias has none of its own
		datesAreTexts(c)
	}
}
