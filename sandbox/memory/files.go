package memory

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// files are a sandbox's, as the backend reaches them.
type files struct{ box *box }

var _ driver.Files = files{}

// do runs f on the tree, with name made absolute, and wraps what goes wrong.
func (f files) do(ctx context.Context, op, name string, act func(t *tree, name string) error) error {
	if err := f.box.usable(ctx, op); err != nil {
		return err
	}
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return signed(driver.Invalid("name", "is empty or contains a NUL byte", "give a POSIX path"), op, f.box.id)
	}
	abs := path.Clean(name)
	if !path.IsAbs(name) {
		abs = path.Join(work, name)
	}
	t := f.box.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.wrap(op, name, act(t, abs))
}

func (f files) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EROFS) {
		err = readOnly{}
	}
	code := driver.CodeInvalid
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = driver.CodeNotFound
	case errors.Is(err, fs.ErrExist):
		code = driver.CodeConflict
	case errors.Is(err, fs.ErrPermission):
		code = driver.CodeDenied
	case errors.Is(err, syscall.ENOSPC):
		code = driver.CodeExhausted
	}
	if e, ok := errors.AsType[*archive.Error](err); ok && e.Limit != "" {
		code = driver.CodeExhausted
	}
	return &driver.Error{Code: code, Op: op, Backend: "memory", Sandbox: f.box.id, Err: &fs.PathError{Op: op, Path: name, Err: err}}
}

// readOnly is EROFS, a refusal like any other in the words of io/fs.
type readOnly struct{}

func (readOnly) Error() string        { return syscall.EROFS.Error() }
func (readOnly) Is(target error) bool { return target == fs.ErrPermission || target == syscall.EROFS }

func (f files) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	var info driver.FileInfo
	var data []byte
	err := f.do(ctx, "open", name, func(t *tree, name string) error {
		at, n, err := t.get(name, true)
		if err != nil {
			return err
		}
		if n.mode.IsDir() {
			return syscall.EISDIR
		}
		if !n.mode.IsRegular() {
			return syscall.EINVAL
		}
		info, data = t.info(at, n), n.data
		return nil
	})
	if err != nil {
		return nil, info, err
	}
	return &reader{ctx: ctx, box: f.box, op: "read", Reader: bytes.NewReader(data)}, info, nil
}

// reader ends with its context, and with its sandbox.
type reader struct {
	io.Reader
	ctx context.Context
	box *box
	op  string
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.box.usable(r.ctx, r.op); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func (r *reader) Close() error { return nil }

func (f files) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	w := &writer{ctx: ctx, files: f, name: name, mode: mode.Perm()}
	err := f.do(ctx, "create", name, func(t *tree, name string) error {
		at, err := t.resolve(name, false)
		if err != nil {
			return err
		}
		if n, ok := t.nodes[at]; ok && n.mode.IsDir() {
			return syscall.EISDIR
		}
		return t.mayWrite(at)
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// writer keeps a file back until it is whole.
type writer struct {
	ctx   context.Context
	files files
	name  string
	mode  fs.FileMode
	data  []byte
	done  bool
	err   error
}

func (w *writer) Write(p []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.done:
		return 0, fs.ErrClosed
	case int64(len(w.data)+len(p)) > w.files.box.tree.capacity:
		w.err = w.files.wrap("create", w.name, syscall.ENOSPC)
		return 0, w.err
	}
	if err := w.files.box.usable(w.ctx, "write"); err != nil {
		return 0, err
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *writer) Close() error {
	if w.done {
		return fs.ErrClosed
	}
	w.done = true
	if w.err != nil {
		return w.err
	}
	return w.files.do(w.ctx, "create", w.name, func(t *tree, name string) error {
		return t.put(name, &node{mode: w.mode, data: w.data})
	})
}

func (f files) Stat(ctx context.Context, name string) (info driver.FileInfo, err error) {
	err = f.do(ctx, "stat", name, func(t *tree, name string) error {
		at, n, err := t.get(name, false)
		if err == nil {
			info = t.info(at, n)
		}
		return err
	})
	return info, err
}

func (f files) List(ctx context.Context, name string) (out []driver.FileInfo, err error) {
	err = f.do(ctx, "list", name, func(t *tree, name string) error {
		at, n, err := t.get(name, true)
		if err != nil {
			return err
		}
		if !n.mode.IsDir() {
			return syscall.ENOTDIR
		}
		for _, child := range t.children(at) {
			out = append(out, t.info(child, t.nodes[child]))
		}
		return nil
	})
	return out, err
}

func (f files) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	return f.do(ctx, "mkdir", name, func(t *tree, name string) error {
		_, err := t.mkdir(name, mode)
		return err
	})
}

func (f files) Remove(ctx context.Context, name string, recursive bool) error {
	return f.do(ctx, "remove", name, func(t *tree, name string) error {
		at, n, err := t.get(name, false)
		if err != nil {
			return err
		}
		if err := t.mayWrite(at); err != nil {
			return err
		}
		if n.mode.IsDir() && len(t.children(at)) > 0 && !recursive {
			return syscall.ENOTEMPTY
		}
		maps.DeleteFunc(t.nodes, func(other string, _ *node) bool { return under(other, at) })
		return nil
	})
}

func (f files) Rename(ctx context.Context, from, to string) error {
	if to == "" || strings.IndexByte(to, 0) >= 0 {
		return signed(driver.Invalid("to", "is empty or contains a NUL byte", "give a POSIX path"), "rename", f.box.id)
	}
	if !path.IsAbs(to) {
		to = path.Join(work, to)
	}
	return f.do(ctx, "rename", from, func(t *tree, from string) error {
		src, n, err := t.get(from, false)
		if err != nil {
			return err
		}
		dst, err := t.resolve(path.Clean(to), false)
		if err != nil {
			return err
		}
		if err := errors.Join(t.mayWrite(src), t.mayWrite(dst)); err != nil {
			return syscall.EROFS
		}
		old, exists := t.nodes[dst]
		switch {
		case src == dst:
			return nil
		case under(dst, src):
			return syscall.EINVAL
		case exists && old.mode.IsDir() && !n.mode.IsDir():
			return syscall.EISDIR
		case exists && !old.mode.IsDir() && n.mode.IsDir():
			return syscall.ENOTDIR
		case exists && len(t.children(dst)) > 0:
			return syscall.ENOTEMPTY
		}
		for _, name := range slices.Collect(maps.Keys(t.nodes)) {
			if under(name, src) {
				t.nodes[dst+strings.TrimPrefix(name, src)] = t.nodes[name]
				delete(t.nodes, name)
			}
		}
		return nil
	})
}
