package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// noValues evaluates without variables and functions: literals are known, and
// everything else is not.
var noValues = &hcl.EvalContext{}

// Limits of a configuration.
const (
	maxConfigFiles = 4000
	maxConfigBytes = 64 << 20
	maxModules     = 1000
)

// readDirectory reads a configuration with the local modules it calls, and
// those that terraform init has fetched. shown is what file names begin with.
func readDirectory(dir, shown string) (*Source, error) {
	s := &Source{modules: map[string]*files{}}
	var size, count int
	fetched := fetchedModules(dir)
	var visit func(key, at string, above []string) error
	visit = func(key, at string, above []string) error {
		if len(s.modules) == maxModules {
			return fmt.Errorf("more than %d modules", maxModules)
		}
		m := &files{dir: path.Join(filepath.ToSlash(shown), at), text: map[string][]byte{}}
		whole := filepath.Join(dir, filepath.FromSlash(at))
		if info, err := os.Stat(whole); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is no directory", whole) // a pipe would never open
		}
		entries, err := os.ReadDir(whole)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !isConfiguration(e.Name()) {
				continue
			}
			file := filepath.Join(dir, filepath.FromSlash(at), e.Name())
			if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
				return fmt.Errorf("%s is no regular file", e.Name()) // a pipe would never end
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if count++; count > maxConfigFiles {
				return fmt.Errorf("more than %d files", maxConfigFiles)
			}
			if size += len(text); size > maxConfigBytes {
				return fmt.Errorf("more than %d MiB", maxConfigBytes>>20)
			}
			m.text[e.Name()] = text
		}
		s.modules[key] = m
		m.parse()
		for name, o := range m.objects {
			call, ok := strings.CutPrefix(name, "module.")
			if !ok {
				continue
			}
			child := call
			if key != "" {
				child = key + "." + call
			}
			where, ok := fetched[child]
			if from := sourceOf(o.block); strings.HasPrefix(from, "./") || strings.HasPrefix(from, "../") {
				where, ok = path.Join(at, from), true
			}
			if !ok {
				s.absent = append(s.absent, child)
				continue
			}
			if slices.Contains(above, where) {
				continue // it calls itself
			}
			switch err := visit(child, where, append(slices.Clip(above), where)); {
			case errors.Is(err, fs.ErrNotExist):
				s.absent = append(s.absent, child)
			case err != nil:
				return err
			}
		}
		return nil
	}
	return s, visit("", ".", []string{"."})
}

// fetchedModules are where terraform init put modules, by key.
func fetchedModules(dir string) map[string]string {
	out := map[string]string{}
	text, err := os.ReadFile(filepath.Join(dir, ".terraform", "modules", "modules.json"))
	if err != nil || len(text) > maxConfigBytes {
		return out
	}
	var list struct {
		Modules []struct{ Key, Dir string }
	}
	if json.Unmarshal(text, &list) == nil {
		for _, m := range list.Modules {
			out[m.Key] = path.Clean(filepath.ToSlash(m.Dir))
		}
	}
	return out
}

func sourceOf(call *hcl.Block) string {
	content, _, _ := call.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "source"}}})
	if content == nil || content.Attributes["source"] == nil {
		return ""
	}
	v, diags := content.Attributes["source"].Expr.Value(noValues)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// directoryItems are the resources of a configuration, each once, whatever its
// count or for_each.
func (p *Plan) directoryItems(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		b := &builder{opts: p.opts, source: p.source, provider: p.source.provider()}
		for _, e := range p.source.engines() {
			if i, ok := e.item(p.source); ok {
				p.seen.Providers++
				if !yield(i, nil) {
					return
				}
			}
		}
		for _, key := range p.source.absent {
			calls := strings.Split(key, ".")
			last := len(calls) - 1
			if !yield(Item{Address: "module." + strings.Join(calls, ".module."), Type: "module", Opaque: notFetched, module: calls[:last], name: calls[last], source: p.source}, nil) {
				return
			}
		}
		for _, key := range sortedKeys(p.source.modules) {
			m := p.source.modules[key]
			m.parse()
			var calls []string
			address := ""
			if key != "" {
				calls = strings.Split(key, ".")
				address = "module." + strings.Join(calls, ".module.") + "."
			}
			if err := m.readable(); err != nil {
				yield(Item{}, err)
				return
			}
			for _, name := range sortedKeys(m.objects) {
				o := m.objects[name]
				if o.block.Type != "resource" {
					continue
				}
				kind := o.block.Labels[0]
				p.seen.count(kind, b.reads(kind) != nil)
				if b.reads(kind) == nil {
					p.seen.skip(kind)
					if runs(kind) && !yield(Item{Address: address + name, Type: kind, Opaque: unreadable, module: calls, name: o.block.Labels[1], source: p.source}, nil) {
						return
					}
					continue
				}
				value, unknown := bodyValue(o.block.Body)
				m.nameSchedule(o.block.Body, value, unknown)
				written := node{value: value, unknown: unknown}
				i := b.build(ctx, kind, node{}, written, strays(kind, written)...)
				if len(i.Parts) == 0 && i.Problem == nil {
					p.seen.Known--
					p.seen.skip(kind)
					continue
				}
				p.seen.Judged++
				i.Address, i.module, i.name = address+name, calls, o.block.Labels[1]
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// nameSchedule gives a reference to a reaper schedule of the same module the
// name that is written there.
func (m *files) nameSchedule(body hcl.Body, value, unknown map[string]any) {
	const attribute, kind = "reaper", "sandboxio_reaper_schedule"
	if unknown[attribute] != true {
		return
	}
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: attribute}}})
	if content == nil || content.Attributes[attribute] == nil {
		return
	}
	schedules := map[string]cty.Value{}
	for name, o := range m.objects {
		label, ok := strings.CutPrefix(name, kind+".")
		if !ok {
			continue
		}
		own, pending := bodyValue(o.block.Body)
		_, counted := own["count"]
		_, each := own["for_each"]
		if text, ok := own["name"].(string); ok && pending["name"] == nil && !counted && !each {
			schedules[label] = cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(text)})
		}
	}
	if len(schedules) == 0 {
		return
	}
	v, diags := content.Attributes[attribute].Expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{kind: cty.ObjectVal(schedules)}})
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return
	}
	if plain, ok := plainValue(v); ok {
		value[attribute], unknown[attribute] = plain, nil
	}
}

// readable refuses what would be judged as something else than it is.
func (m *files) readable() error {
	for _, d := range m.broken {
		if d.Severity == hcl.DiagError {
			at := m.dir
			if d.Subject != nil {
				at = fmt.Sprintf("%s:%d:%d", path.Join(m.dir, d.Subject.Filename), d.Subject.Start.Line, d.Subject.Start.Column)
			}
			return &driver.Error{Code: driver.CodeInvalid, Op: "read the configuration", Err: fmt.Errorf("%s: %s", at, d.Summary), Hint: "mend the file: terraform validate"}
		}
	}
	for _, f := range m.parsed {
		if isOverride(f.name) {
			return &driver.Error{Code: driver.CodeUnsupported, Op: "read the configuration", Err: fmt.Errorf("%s changes what other files say", path.Join(m.dir, f.name)),
				Hint: "check a plan instead, in which the two are merged: terraform plan -out=tf.plan"}
		}
	}
	if len(m.twice) > 0 {
		return &driver.Error{Code: driver.CodeUnsupported, Op: "read the configuration", Err: fmt.Errorf("%s: %s", cmp.Or(m.dir, "."), m.twice[0]),
			Hint: "take one of them out; of main.tf and main.tofu, which depends on the program that plans, check a plan instead"}
	}
	return nil
}

// provider is what the provider's blocks in the root say of backends. Where
// several say different things, it is not known.
func (s *Source) provider() provider {
	var out provider
	seen := false
	root := s.modules[""]
	if root == nil {
		return providerOf(node{})
	}
	root.parse()
	for _, b := range root.providers {
		if b.Labels[0] != "sandboxio" {
			continue
		}
		value, unknown := bodyValue(b.Body)
		p := providerOf(node{value: value, unknown: unknown})
		if seen {
			p = p.merge(out)
		}
		out, seen = p, true
	}
	if !seen {
		return providerOf(node{})
	}
	return out
}

// bodyValue is what is known of a block's content: literals, and nothing that
// refers to anything.
func bodyValue(body hcl.Body) (value, unknown map[string]any) {
	value, unknown = map[string]any{}, map[string]any{}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attributes, _ := body.JustAttributes()
		for name, a := range attributes {
			value[name], unknown[name] = exprValue(a.Expr)
		}
		openDynamic(value, unknown)
		return value, unknown
	}
	for name, a := range native.Attributes {
		value[name], unknown[name] = exprValue(a.Expr)
	}
	for _, b := range native.Blocks {
		if b.Type == "dynamic" && len(b.Labels) == 1 {
			delete(value, b.Labels[0])
			unknown[b.Labels[0]] = true
			continue
		}
		if unknown[b.Type] == true {
			continue
		}
		v, u := bodyValue(b.Body)
		values, _ := value[b.Type].([]any)
		unknowns, _ := unknown[b.Type].([]any)
		value[b.Type], unknown[b.Type] = append(values, v), append(unknowns, u)
	}
	return value, unknown
}

// openDynamic makes the blocks unknown that dynamic ones of the JSON syntax,
// in which they look like anything else, stand for.
func openDynamic(value, unknown any) {
	if list, ok := value.([]any); ok {
		for i, v := range list {
			openDynamic(v, element(unknown, i))
		}
		return
	}
	values, _ := value.(map[string]any)
	unknowns, _ := unknown.(map[string]any)
	if unknowns == nil {
		return
	}
	for name, v := range values {
		openDynamic(v, unknowns[name])
	}
	made := node{value: values["dynamic"], unknown: unknowns["dynamic"]}
	for _, d := range blocks(made) {
		for _, name := range d.keys() {
			values[name], unknowns[name] = nil, true
		}
	}
}

func exprValue(e hcl.Expression) (value, unknown any) {
	if p, ok := e.(*hclsyntax.ParenthesesExpr); ok {
		return exprValue(p.Expression)
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		values, unknowns := make([]any, len(items)), make([]any, len(items))
		for i, item := range items {
			values[i], unknowns[i] = exprValue(item)
		}
		return values, unknowns
	}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		values, unknowns := map[string]any{}, map[string]any{}
		for _, kv := range pairs {
			key, ok := keyOf(kv.Key)
			if !ok {
				return nil, true
			}
			values[key], unknowns[key] = exprValue(kv.Value)
		}
		return values, unknowns
	}
	v, diags := e.Value(noValues)
	if diags.HasErrors() || !v.IsKnown() {
		return nil, true
	}
	plain, ok := plainValue(v)
	if !ok {
		return nil, true
	}
	return plain, nil
}

// plainValue is a literal as encoding/json would have it.
func plainValue(v cty.Value) (any, bool) {
	v, _ = v.Unmark()
	switch {
	case v.IsNull():
		return nil, true
	case v.Type() == cty.String:
		return v.AsString(), true
	case v.Type() == cty.Bool:
		return v.True(), true
	case v.Type() == cty.Number:
		return json.Number(v.AsBigFloat().Text('f', -1)), true
	}
	return nil, false
}
