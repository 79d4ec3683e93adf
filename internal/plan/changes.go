package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// change is one resource of a plan as JSON.
type change struct {
	Address string          `json:"address"`
	Module  string          `json:"module_address"`
	Mode    string          `json:"mode"`
	Type    string          `json:"type"`
	Name    string          `json:"name"`
	Deposed string          `json:"deposed"`
	Change  json.RawMessage `json:"change"`
}

type values struct {
	Actions         []string `json:"actions"`
	Before          any      `json:"before"`
	After           any      `json:"after"`
	AfterUnknown    any      `json:"after_unknown"`
	BeforeSensitive any      `json:"before_sensitive"`
	AfterSensitive  any      `json:"after_sensitive"`
	Importing       any      `json:"importing"`
}

// outline is what surrounds the changes, which a first pass collects.
type outline struct {
	provider provider
	engines  []engine
	written  map[string]any     // the expressions of others' resources, by module, type and name
	strays   map[string][]stray // names in ours that Terraform drops, by the same
}

// outlined makes the first pass.
func (p *Plan) outlined() error {
	s, err := p.rewind()
	if err != nil {
		return err
	}
	var (
		format             string
		errored, isPlan    bool
		complete, deferred = true, false
		config             configuration
		other              []string
	)
	scalar := func(v any) error {
		raw, err := s.raw(maxName)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, v)
	}
	err = s.object(func(key string) error {
		switch key {
		case "format_version":
			return scalar(&format)
		case "errored":
			return scalar(&errored)
		case "complete":
			return scalar(&complete)
		case "deferred_changes":
			deferred = true
			return s.skip()
		case "resource_changes", "planned_values":
			isPlan = true
			return s.skip()
		case "configuration":
			isPlan = true
			return s.object(func(key string) error {
				if key == "root_module" {
					return p.writtenIn(s, "")
				}
				if key != "provider_config" {
					return s.skip()
				}
				raw, err := s.raw(maxValue)
				if err != nil {
					return err
				}
				return decode(raw, &config.Providers)
			})
		}
		other = append(other, key)
		return s.skip()
	})
	switch {
	case slices.Contains(other, "remote_plan_format"):
		return errors.New("a saved plan of HCP Terraform, which holds a link and no values")
	case slices.Contains(other, "encrypted_data"):
		return errors.New("an encrypted plan of OpenTofu, which only tofu can read")
	case err != nil:
		return err
	case slices.Contains(other, "values") && !isPlan:
		return errors.New("the JSON of a state, not of a plan")
	case !isPlan || format == "":
		return errors.New("not the JSON of a plan")
	case !strings.HasPrefix(format, "1."):
		return fmt.Errorf("the plan has the format %s, and 1.x is understood", format)
	case errored:
		return errors.New("the plan failed: Terraform stopped before all of it was planned")
	}
	p.seen.Partial = deferred || !complete
	if deferred {
		p.seen.Notes = append(p.seen.Notes, "some changes are deferred to a later plan, which has to be checked too")
	} else if !complete {
		p.seen.Notes = append(p.seen.Notes, "the plan is not complete: what it leaves out, by -target or otherwise, is not judged")
	}
	p.outline.provider, p.outline.engines = config.provider(), config.engines()
	return nil
}

// writtenIn collects what the configuration of one module says of others'
// resources, which attributes it sets, and of ours, which names Terraform drops.
func (p *Plan) writtenIn(s *stream, path string) error {
	if p.outline.written == nil {
		p.outline.written, p.outline.strays = map[string]any{}, map[string][]stray{}
	}
	b := &builder{}
	return s.object(func(key string) error {
		switch key {
		case "resources":
			return s.array(func() error {
				raw, err := s.raw(maxValue)
				if err != nil {
					return err
				}
				var r struct{ Mode, Type, Name string }
				if err := json.Unmarshal(raw, &r); err != nil {
					return err
				}
				if r.Mode != "managed" || b.reads(r.Type) == nil {
					return nil
				}
				var e struct{ Expressions any }
				if err := json.Unmarshal(raw, &e); err != nil {
					return err
				}
				key := path + r.Type + "." + r.Name
				if foreign(r.Type) {
					p.outline.written[key] = e.Expressions
					return nil
				}
				value, unknown := expression(e.Expressions)
				if found := strays(r.Type, node{value: value, unknown: unknown}); len(found) > 0 {
					p.outline.strays[key] = found
				}
				return nil
			})
		case "module_calls":
			return s.object(func(name string) error {
				return s.object(func(key string) error {
					if key == "module" {
						return p.writtenIn(s, path+name+".")
					}
					return s.skip()
				})
			})
		}
		return s.skip()
	})
}

// rewind starts a pass from the beginning.
func (p *Plan) rewind() (*stream, error) {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	s := newStream(p.file)
	if err := s.fill(); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(s.buf[:s.end], []byte("\xef\xbb\xbf")) {
		s.pos = 3
	}
	return s, nil
}

// changes makes the second pass.
func (p *Plan) changes(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		s, err := p.rewind()
		if err != nil {
			yield(Item{}, err)
			return
		}
		b := &builder{opts: p.opts, source: p.source, provider: p.outline.provider}
		stop := errors.New("enough")
		one := func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			raw, err := s.raw(maxValue)
			if err != nil {
				return err
			}
			if p.opts.Progress != nil {
				p.opts.Progress(s.offset(), p.size)
			}
			i, ok, err := p.item(ctx, b, raw)
			if err != nil {
				return err
			}
			if ok && !yield(i, nil) {
				return stop
			}
			return nil
		}
		for _, e := range p.outline.engines {
			if i, ok := e.item(p.source); ok {
				p.seen.Providers++
				if !yield(i, nil) {
					return
				}
			}
		}
		err = s.object(func(key string) error {
			switch key {
			case "resource_changes":
				return s.array(one)
			case "deferred_changes":
				return s.array(func() error {
					return s.object(func(key string) error {
						if key == "resource_change" {
							return one()
						}
						return s.skip()
					})
				})
			}
			return s.skip()
		})
		if err != nil && !errors.Is(err, stop) {
			if ctx.Err() == nil {
				err = &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: err}
			}
			yield(Item{}, err)
		}
	}
}

// item reads one change; ok is false for what nobody judges.
func (p *Plan) item(ctx context.Context, b *builder, raw []byte) (i Item, ok bool, err error) {
	var c change
	if err := json.Unmarshal(raw, &c); err != nil {
		return i, false, err
	}
	if c.Mode == "data" {
		return i, false, nil
	}
	known := b.reads(c.Type) != nil
	p.seen.count(c.Type, known)
	if !known {
		return p.opaque(b, c)
	}
	var v values
	if err := decode(c.Change, &v); err != nil {
		return i, false, fmt.Errorf("%s: %w", c.Address, err)
	}
	if v.After == nil && v.AfterUnknown != true || c.Deposed != "" || slices.Equal(v.Actions, []string{"forget"}) {
		p.seen.Deleted++
		return i, false, nil
	}
	p.seen.Judged++
	noop := slices.Equal(v.Actions, []string{"no-op"})
	before := node{}
	if v.Importing == nil && (noop || slices.Equal(v.Actions, []string{"update"})) {
		before = node{value: v.Before, secret: v.BeforeSensitive}
	}
	after := node{value: v.After, unknown: v.AfterUnknown, secret: v.AfterSensitive}
	if foreign(c.Type) {
		after.config = p.outline.written[strings.Join(append(module(c.Module), c.Type, c.Name), ".")]
	}
	calls := module(c.Module)
	// Several instances have the outline's in common.
	found := slices.Concat(p.outline.strays[strings.Join(append(calls, c.Type, c.Name), ".")], strays(c.Type, p.source.written(calls, c.Type+"."+c.Name)))
	i = b.build(ctx, c.Type, before, after, found...)
	if len(i.Parts) == 0 && i.Problem == nil { // of a type that may be anything
		p.seen.Known--
		p.seen.Judged--
		p.seen.skip(c.Type)
		return i, false, nil
	}
	i.Unchanged = i.Unchanged || noop && v.Importing == nil && reflect.DeepEqual(v.Before, v.After)
	i.Address, i.module, i.name = c.Address, calls, c.Name
	return i, true, nil
}

// opaque is a resource that nobody reads. It is told of if it may start
// something, and counted unless it only goes away.
func (p *Plan) opaque(b *builder, c change) (i Item, ok bool, err error) {
	var v struct{ Actions []string }
	if err := json.Unmarshal(c.Change, &v); err != nil {
		return i, false, fmt.Errorf("%s: %w", c.Address, err)
	}
	if c.Deposed != "" || slices.Equal(v.Actions, []string{"delete"}) || slices.Equal(v.Actions, []string{"forget"}) {
		return i, false, nil
	}
	p.seen.skip(c.Type)
	return Item{Address: c.Address, Type: c.Type, Opaque: unreadable, module: module(c.Module), name: c.Name, source: b.source}, runs(c.Type), nil
}

// decode keeps numbers as they are written.
func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}
