package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// strictJSON reads one document of YAML, of which JSON is a part, and writes it
// as JSON. A key that stands twice is refused, and a date stays the text that it
// was written as.
func strictJSON(raw []byte) ([]byte, error) {
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
	var v any
	if err := doc.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func datesAreTexts(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content { // an alias has none of its own
		datesAreTexts(c)
	}
}
