package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

func (f files) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	p := &packing{}
	p.out = archive.NewWriter(&p.ready)
	err := f.do(ctx, "pack", name, func(t *tree, name string) error {
		at, n, err := t.get(name, true)
		if err != nil {
			return err
		}
		if !n.mode.IsDir() {
			return syscall.ENOTDIR
		}
		for _, other := range slices.Sorted(maps.Keys(t.nodes)) {
			if other == at || !under(other, at) {
				continue
			}
			if refused(other) {
				return fmt.Errorf("%s is not for file operations: %w", other, syscall.EACCES)
			}
			n := *t.nodes[other]
			p.left = append(p.left, packed{strings.TrimPrefix(strings.TrimPrefix(other, at), "/"), n})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &reader{Reader: p, ctx: ctx, box: f.box, op: "pack"}, nil
}

// packing makes a tar stream as it is read, of what the directory held when
// it began.
type packing struct {
	left  []packed
	out   *archive.Writer
	ready bytes.Buffer
	ended bool
}

type packed struct {
	name string
	node node
}

func (p *packing) Read(b []byte) (int, error) {
	for p.ready.Len() == 0 {
		if p.ended {
			return 0, io.EOF
		}
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	return p.ready.Read(b)
}

func (p *packing) next() error {
	if len(p.left) == 0 {
		p.ended = true
		return p.out.Close()
	}
	e := p.left[0]
	p.left = p.left[1:]
	return p.out.Add(archive.Entry{Name: e.name, Mode: e.node.mode, Size: int64(len(e.node.data)), ModTime: e.node.mod, Link: e.node.link}, bytes.NewReader(e.node.data))
}

func (f files) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	u := &unpacking{ctx: ctx, files: f, name: name}
	err := f.do(ctx, "unpack", name, func(t *tree, name string) (err error) {
		if u.at, err = t.mkdir(name, 0o755); errors.Is(err, syscall.ENOTDIR) {
			err = fs.ErrExist
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// unpacking keeps a stream back until it is whole: a fake has the memory.
type unpacking struct {
	ctx   context.Context
	files files
	name  string
	at    string
	data  bytes.Buffer
	done  bool
	err   error
}

// headers is what a stream may have beside what the disk can hold.
const headers = 4 << 20

func (u *unpacking) Write(b []byte) (int, error) {
	switch {
	case u.err != nil:
		return 0, u.err
	case u.done:
		return 0, fs.ErrClosed
	case int64(u.data.Len()+len(b)) > u.files.box.tree.capacity+headers:
		u.err = u.files.wrap("unpack", u.name, syscall.ENOSPC)
		return 0, u.err
	}
	if err := u.files.box.usable(u.ctx, "unpack"); err != nil {
		return 0, err
	}
	return u.data.Write(b)
}

func (u *unpacking) Close() error {
	if u.done {
		return fs.ErrClosed
	}
	u.done = true
	if u.err != nil {
		return u.err
	}
	return u.files.do(u.ctx, "unpack", u.name, func(t *tree, _ string) error { return u.unpack(t) })
}

func (u *unpacking) unpack(t *tree) error {
	in := archive.NewReader(&u.data, archive.Limits{Bytes: t.capacity + 1, Entries: 1 << 20, Depth: 256})
	dirs := map[string]fs.FileMode{}
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := path.Join(u.at, e.Name)
		if err := t.below(u.at, path.Dir(e.Name), dirs); err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		if e.Mode.IsDir() {
			if err := t.below(u.at, e.Name, dirs); err != nil {
				return fmt.Errorf("%q: %w", e.Name, err)
			}
			if _, made := dirs[name]; made {
				dirs[name] = e.Mode.Perm()
			}
			continue
		}
		data, err := io.ReadAll(in)
		if err == nil {
			err = t.put(name, &node{mode: e.Mode.Perm(), data: data})
		}
		if err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		if e.ModTime.Unix() > 0 {
			t.nodes[name].mod = e.ModTime
		}
	}
	for name, mode := range dirs {
		t.nodes[name].mode = fs.ModeDir | mode
	}
	if r := in.Report(); r.LeftOutCount > 0 {
		return &archive.Error{Err: fmt.Errorf("only directories and files are unpacked; %d things were left out, %v first", r.LeftOutCount, r.LeftOut[0])}
	}
	return nil
}

// below makes the directories of name in at, following no link, and notes
// those that it made.
func (t *tree) below(at, name string, made map[string]fs.FileMode) error {
	for part := range strings.SplitSeq(name, "/") {
		if at = path.Join(at, part); refused(at) {
			return syscall.EACCES
		}
		n, ok := t.nodes[at]
		if ok && !n.mode.IsDir() {
			return syscall.EEXIST
		}
		if !ok {
			if err := t.mayWrite(at); err != nil {
				return err
			}
			t.nodes[at] = &node{mode: fs.ModeDir | 0o755, mod: time.Now()}
			made[at] = 0o755
		}
	}
	return nil
}
