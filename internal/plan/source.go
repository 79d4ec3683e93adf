package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// Source is the configuration as it was written, by module. It is safe for
// concurrent use. A nil one knows no places.
type Source struct {
	modules map[string]*files // by key: "" is the root, "a.b" the module b that a calls
	absent  []string          // keys of modules that are called, and not here
}

// files is one module's text.
type files struct {
	dir  string            // as shown
	text map[string][]byte // by file name

	once      sync.Once
	parsed    []file
	broken    hcl.Diagnostics
	twice     []string           // what several files say, none of which is an override
	objects   map[string]*object // by "type.name", and "module.name"
	providers []*hcl.Block
}

type file struct {
	name string
	body hcl.Body
}

// object is a resource or a call of a module.
type object struct {
	block *hcl.Block
	file  string
}

// isOverride reports whether a file changes what others say.
func isOverride(name string) bool {
	base := name
	for _, ext := range extensions {
		if short, ok := strings.CutSuffix(name, ext); ok {
			base = short
		}
	}
	return base == "override" || strings.HasSuffix(base, "_override")
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

var extensions = []string{".tf", ".tf.json", ".tofu", ".tofu.json"}

// isConfiguration reports whether Terraform or OpenTofu reads a file of that
// name. Both leave out what editors keep beside it.
func isConfiguration(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

var topLevel = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "module", LabelNames: []string{"name"}},
	{Type: "provider", LabelNames: []string{"name"}},
}}

// parse reads a module's files when somebody asks. What does not parse has no
// places.
func (m *files) parse() {
	m.once.Do(func() {
		m.objects = map[string]*object{}
		for name, text := range m.text {
			var f *hcl.File
			var diags hcl.Diagnostics
			if strings.HasSuffix(name, ".json") {
				f, diags = hcljson.Parse(text, name)
			} else {
				f, diags = hclsyntax.ParseConfig(text, name, hcl.InitialPos)
			}
			if diags.HasErrors() {
				m.broken = append(m.broken, diags...)
			}
			if f == nil || f.Body == nil {
				continue
			}
			m.parsed = append(m.parsed, file{name, f.Body})
		}
		slices.SortFunc(m.parsed, func(a, b file) int {
			return cmp.Or(compareBool(isOverride(a.name), isOverride(b.name)), cmp.Compare(a.name, b.name))
		})
		for _, f := range m.parsed {
			content, _, _ := f.body.PartialContent(topLevel)
			if content == nil {
				continue
			}
			for _, b := range content.Blocks {
				var name string
				switch b.Type {
				case "resource":
					name = b.Labels[0] + "." + b.Labels[1]
				case "module":
					name = "module." + b.Labels[0]
				default:
					m.providers = append(m.providers, b)
					name = "provider." + b.Labels[0]
					value, _ := bodyValue(b.Body)
					if alias, ok := value["alias"].(string); ok {
						name += "." + alias
					}
				}
				if m.objects[name] == nil { // the first is no override
					m.objects[name] = &object{b, f.name}
				} else if b.Type != "provider" && !isOverride(f.name) {
					m.twice = append(m.twice, fmt.Sprintf("%s is in %s and in %s", name, m.objects[name].file, f.name))
				}
			}
		}
	})
}

// Place is where something was written. Lines and columns count from 1; an
// empty File is nowhere.
type Place struct {
	File               string
	Line, Column       int
	EndLine, EndColumn int    // the column is the first one after it
	Exact              bool   // the very value; otherwise the nearest thing that encloses it
	Calls              []Call // of modules that lead there, outermost first
}

// Call is a place where a module is called.
type Call struct {
	File string
	Line int
}

// find is where an attribute of a resource was written.
func (s *Source) find(modules []string, kind, name string, attr []any) Place {
	if s == nil {
		return Place{}
	}
	var calls []Call
	for i := range modules {
		m := s.modules[strings.Join(modules[:i], ".")]
		if m == nil {
			return Place{}
		}
		m.parse()
		o := m.objects["module."+modules[i]]
		if o == nil {
			return Place{}
		}
		calls = append(calls, Call{path.Join(m.dir, o.file), o.block.DefRange.Start.Line})
	}
	m := s.modules[strings.Join(modules, ".")]
	if m == nil {
		return Place{}
	}
	m.parse()
	o := m.objects[kind+"."+name]
	if o == nil {
		return Place{}
	}
	r, exact := locate(o.block, attr)
	return Place{
		File: path.Join(m.dir, o.file), Line: r.Start.Line, Column: r.Start.Column, EndLine: r.End.Line, EndColumn: r.End.Column,
		Exact: exact, Calls: calls,
	}
}

// Line is the text of a line at a place, without its end.
func (s *Source) Line(p Place, line int) (string, bool) {
	if s == nil || p.File == "" || line < 1 {
		return "", false
	}
	for _, m := range s.modules {
		text, ok := m.text[path.Base(p.File)]
		if !ok || path.Join(m.dir, path.Base(p.File)) != p.File {
			continue
		}
		for l := range strings.Lines(string(text)) {
			if line--; line == 0 {
				return strings.TrimRight(l, "\r\n"), true
			}
		}
	}
	return "", false
}
