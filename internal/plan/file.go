package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options say how a plan is read.
type Options struct {
	// Source is the directory that the configuration lies in: of a plan as
	// JSON, the only thing that tells places; of a binary plan, where
	// Terraform runs. "" is none, and the plan's own directory.
	Source string
	// Backend opens the backend of that name, with that default image, and
	// connects to nothing.
	Backend func(ctx context.Context, name, image string) (driver.Backend, error)
	// Progress is told how many bytes of how many were read; it may be nil.
	Progress func(done, total int64)
}

// Plan is an open plan or configuration. Close it.
type Plan struct {
	opts    Options
	name    string // as it was opened
	source  *Source
	file    *os.File
	size    int64
	ours    bool // the file was made here, and is ours to remove
	outline outline
	seen    Seen
}

// Seen is what a plan holds.
type Seen struct {
	Changes   int            // resources in the plan
	Types     map[string]int // how many of each type
	Known     int            // of a type that is judged
	Deleted   int            // of those, the ones that only go away, which nobody judges
	Judged    int            // resources
	Providers int            // configurations of providers that were judged, beside the resources
	Skipped   map[string]int // what is made, and was not judged, by type
	Partial   bool           // resources of the configuration are not among them
	Notes     []string       // what else a reviewer must know
}

func (s *Seen) skip(kind string) {
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	s.Skipped[kind]++
}

func (s *Seen) count(kind string, known bool) {
	if s.Types == nil {
		s.Types = map[string]int{}
	}
	s.Changes++
	s.Types[kind]++
	if known {
		s.Known++
	}
}

// Open reads what is under review: a binary plan, a plan as JSON, or a
// directory of Terraform sources. Code: invalid.
func Open(ctx context.Context, name string, opts Options) (*Plan, error) {
	bad := func(problem, fix string) (*Plan, error) {
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: errors.New(name + ": " + problem), Hint: fix}
	}
	info, err := os.Stat(name)
	if err != nil {
		fix := "name a plan file, a plan as JSON, or a directory of .tf files"
		if name == "-" {
			fix = "standard input is not read; write the plan to a file first: terraform show -json tf.plan > plan.json"
		}
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: err, Hint: fix}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return bad("it is no regular file, and a plan is read twice", "write it to a file first: terraform show -json tf.plan > plan.json")
	}
	p := &Plan{opts: opts, name: name}
	if info.IsDir() {
		shown := Shown(name)
		if p.source, err = readDirectory(name, shown); err != nil {
			return bad(err.Error(), "name a directory of .tf files")
		}
		if len(p.source.modules[""].text) == 0 {
			return bad("there are no .tf files in it", "name the directory of the root module")
		}
		if absent := p.source.absent; len(absent) > 0 {
			slices.Sort(absent)
			p.seen.Partial = true
		}
		return p, nil
	}
	if p.file, err = os.Open(name); err != nil {
		return bad(err.Error(), "make it readable")
	}
	p.size = info.Size()
	begin := make([]byte, 4)
	n, _ := io.ReadFull(p.file, begin)
	begin = begin[:n]
	shown := ""
	if opts.Source != "" {
		shown = Shown(opts.Source)
	}
	switch {
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")):
		source, tofu, err := readArchive(p.file, p.size, shown)
		if err != nil {
			return nil, errors.Join(p.Close(), &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: fmt.Errorf("%s: %w", name, err), Hint: "make it with terraform plan -out=tf.plan"})
		}
		p.source = source
		dir := opts.Source
		if dir == "" {
			dir = workDir(name)
		}
		shownJSON, err := show(ctx, name, dir, tofu)
		if err != nil {
			return nil, errors.Join(p.Close(), err)
		}
		_ = p.file.Close()
		p.file, p.ours = shownJSON, true
		if p.size, err = p.file.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(p.Close(), err)
		}
	case bytes.HasPrefix(begin, []byte{0xff, 0xfe}), bytes.HasPrefix(begin, []byte{0xfe, 0xff}):
		_ = p.Close()
		return bad("the JSON is in UTF-16, as PowerShell writes it", "write it with terraform show -json tf.plan | Out-File -Encoding utf8 plan.json")
	case opts.Source != "":
		if p.source, err = readDirectory(opts.Source, shown); err != nil {
			_ = p.Close()
			return bad(fmt.Sprintf("--source: %v", err), "name the directory of the root module, or leave --source out")
		}
	}
	if err := p.outlined(); err != nil {
		return nil, errors.Join(p.Close(), &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: fmt.Errorf("%s: %w", name, err), Hint: "make it with terraform plan -out=tf.plan and terraform show -json tf.plan > plan.json"})
	}
	return p, nil
}

// Shown is a file or directory as seen from here, when it lies below.
func Shown(dir string) string {
	dir = filepath.Clean(dir)
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
			dir = rel
		}
	}
	return filepath.ToSlash(dir)
}

// workDir is where a binary plan can be shown: beside it when terraform init
// was run there, otherwise here.
func workDir(plan string) string {
	dir := filepath.Dir(plan)
	if _, err := os.Stat(filepath.Join(dir, ".terraform")); err == nil {
		return dir
	}
	return "."
}

// Close closes and forgets.
func (p *Plan) Close() error {
	switch {
	case p.file == nil:
		return nil
	case p.ours:
		discard(p.file)
		return nil
	}
	return p.file.Close()
}

// Items are the resources to judge, in the plan's order. They can be walked
// once. An error ends the walk.
func (p *Plan) Items(ctx context.Context) iter.Seq2[Item, error] {
	if p.file == nil {
		return p.directoryItems(ctx)
	}
	return p.changes(ctx)
}

// Seen is what the walk through Items saw.
func (p *Plan) Seen() Seen { return p.seen }

// Whole is the place of what has none of its own: the begin of the root
// module's first file, or of what was opened where no text of the configuration
// is known.
func (p *Plan) Whole() Place {
	out := Place{File: Shown(p.name), Line: 1, Column: 1, EndLine: 1, EndColumn: 1}
	if p.source != nil {
		if root := p.source.modules[""]; root != nil && len(root.text) > 0 {
			out.File = path.Join(root.dir, sortedKeys(root.text)[0])
		}
	}
	return out
}

// Line is the text of a line near a place, and whether there is one.
func (p *Plan) Line(at Place, line int) (string, bool) { return p.source.Line(at, line) }

// Nothing says that there was nothing to judge, which is an error: a review
// that looked at nothing must not pass.
func (s Seen) Nothing() error {
	if s.Known > 0 {
		return nil
	}
	what := "no resources at all"
	if s.Changes > 0 {
		what = fmt.Sprintf("%d resources, none of which is a sandbox: %s", s.Changes, typeList(s.Types))
	}
	return &driver.Error{Code: driver.CodeInvalid, Op: "check", Err: errors.New("nothing was judged: there are " + what),
		Hint: "check the plan of the configuration that has the sandboxes, and only that one"}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
