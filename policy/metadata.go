package policy

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.yaml.in/yaml/v3"
)

// metadata is where a package says what its rule is. It is read again only to
// say where a mistake is.
type metadata struct {
	module *ast.Module
	block  *ast.Annotations // nil = there is none
}

// at is the file and the line of a key, as in at("custom", "sources", "0"): of
// the nearest one above where it is missing, and else of the first line.
func (d metadata) at(keys ...string) string {
	if d.block == nil {
		return place(d.module.Package.Location.File, d.module.Package.Location.Row)
	}
	line := d.block.Location.Row
	if n := d.read(); n != nil {
		for _, k := range keys {
			value, at := member(n, k)
			if value == nil {
				break
			}
			n, line = value, at
		}
	}
	return place(d.module.Package.Location.File, line)
}

// mistake is an error of decoding what is below custom, with its place.
func (d metadata) mistake(err error) error {
	custom := &yaml.Node{Line: d.block.Location.Row}
	if n := d.read(); n != nil {
		if value, _ := member(n, "custom"); value != nil {
			custom = value
		}
	}
	line, said := lineOf(custom, err)
	return fmt.Errorf("%s: METADATA: custom: %s", place(d.module.Package.Location.File, line), said)
}

// read gives the block as it was written, with the lines of its file; nil = it
// cannot be read.
func (d metadata) read() *yaml.Node {
	row := d.block.Location.Row
	text := strings.Repeat("\n", row)
	for _, c := range d.module.Comments {
		if c.Location.Row == row+1 {
			text, row = text+string(c.Text)+"\n", row+1
		}
	}
	doc, err := readYAML([]byte(text))
	if err != nil {
		return nil
	}
	return doc
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
