package policy

import (
	"bytes"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.yaml.in/yaml/v3"
)

// metadata is where a package says what its rule is. It is read again only to
// say where a mistake is.
type metadata struct {
	module *ast.Module
	block  *ast.Annotations // nil = there is none
	node   *yaml.Node       // once it was read
}

// at is the file and the line of a key, as in at("custom", "sources", "0"): of
// the nearest one above where it is missing, and else of the first line.
func (d *metadata) at(keys ...string) string {
	if d.block == nil {
		return place(d.module.Package.Location.File, d.module.Package.Location.Row)
	}
	line := d.block.Location.Row
	n := d.read()
	for _, k := range keys {
		value, at := member(n, k)
		if value == nil {
			break
		}
		n, line = value, at
	}
	return place(d.module.Package.Location.File, line)
}

// mistake is an error of decoding what is below custom, with its place.
func (d *metadata) mistake(err error) error {
	custom, _ := member(d.read(), "custom")
	if custom == nil {
		custom = &yaml.Node{Line: d.block.Location.Row}
	}
	line, said := lineOf(custom, err)
	return fmt.Errorf("%s: METADATA: custom: %s", place(d.module.Package.Location.File, line), said)
}

// read gives the block as it was written, with the lines of its file; nothing
// is in it if it cannot be read. There may be thousands of mistakes, and it is
// read for the first.
func (d *metadata) read() *yaml.Node {
	if d.node != nil {
		return d.node
	}
	row := d.block.Location.Row
	text := bytes.Repeat([]byte("\n"), row)
	for _, c := range d.module.Comments {
		if c.Location.Row == row+1 {
			text, row = append(append(text, c.Text...), '\n'), row+1
		}
	}
	var err error
	if d.node, err = readYAML(text); err != nil {
		d.node = &yaml.Node{}
	}
	return d.node
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
