package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Files reaches a sandbox's files with the workload's own rights. Names are
// POSIX paths, absolute or relative to /work, on every host. Content is never
// touched: bytes come and go as they are. /proc, /sys, devices and the
// sandbox's own machinery are refused, and nothing waits for a FIFO.
//
// Errors wrap [fs.ErrNotExist], [fs.ErrExist] and [fs.ErrPermission] where
// they apply. Context errors stay what they are; a sandbox that vanished has
// the code gone. Methods are safe for concurrent use; each is one operation
// with one [Record].
type Files struct{ s *Sandbox }

// Open opens a regular file for reading. The caller closes it; when ctx or
// the sandbox ends, reading fails. What is read is not bounded: the program in
// the sandbox decides how long the file is.
func (f *Files) Open(ctx context.Context, name string) (io.ReadCloser, FileInfo, error) {
	type opened struct {
		r  io.ReadCloser
		fi FileInfo
	}
	o, err := operate(ctx, f, "open", func(d driver.Files) (opened, error) {
		r, fi, err := d.Open(ctx, name)
		return opened{reader{r, f.s}, fi}, err
	}, func(o opened) error { return o.r.Close() })
	return o.r, o.fi, err
}

// Create writes a regular file. It appears under its name, complete, when
// Close returns nil; until then, and for good when ctx or the sandbox ends,
// what has the name stays. A writer that is given up is closed after its ctx
// has ended. Only mode's permission bits count.
func (f *Files) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := operate(ctx, f, "create-file", func(d driver.Files) (io.WriteCloser, error) { return d.Create(ctx, name, mode) },
		func(w io.WriteCloser) error {
			cancel()
			_ = w.Close() // given up: that it is not complete is what is wanted
			return nil
		})
	if err != nil {
		cancel()
		return nil, err
	}
	return writer{w, f.s, cancel}, nil
}

// reader names what goes wrong after Open, as Open does: a file's name may hold
// a secret.
type reader struct {
	io.ReadCloser
	s *Sandbox
}

func (r reader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.s.begin("read", Cmd{}).name(err)
	}
	return n, err
}

// writer does so after Create, and it frees its context once the file is there or
// not.
type writer struct {
	io.WriteCloser
	s      *Sandbox
	cancel context.CancelFunc
}

func (w writer) Write(b []byte) (int, error) {
	n, err := w.WriteCloser.Write(b)
	if err != nil {
		err = w.s.begin("write", Cmd{}).name(err)
	}
	return n, err
}

func (w writer) Close() error {
	defer w.cancel()
	return w.s.begin("create-file", Cmd{}).name(w.WriteCloser.Close())
}

// maxRead bounds what Read holds in memory.
const maxRead = 256 << 20

// Read returns the whole of a file of at most 256 MiB, byte for byte. Code
// exhausted: it is larger; use Open.
func (f *Files) Read(ctx context.Context, name string) ([]byte, error) {
	return operate(ctx, f, "read", func(d driver.Files) ([]byte, error) {
		r, _, err := d.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		b, err := io.ReadAll(io.LimitReader(r, maxRead+1))
		if err == nil && len(b) > maxRead {
			err = &Error{Code: CodeExhausted, Field: "name", Err: fmt.Errorf("the file has more than %d MiB", maxRead>>20), Hint: "use Open, and read it in pieces"}
		}
		if err != nil {
			return nil, err
		}
		return b, nil
	}, nil)
}

// Write writes the whole of a file. Its directory exists, or is made by Mkdir.
func (f *Files) Write(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return f.do(ctx, "write", func(d driver.Files) error { return write(ctx, d, name, data, mode) })
}

// write gives a file its content. A writer that is not closed leaves no file:
// the end of its context gives it up.
func write(ctx context.Context, d driver.Files, name string, data []byte, mode fs.FileMode) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := d.Create(ctx, name, mode)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// Stat describes a file; a symbolic link itself, not what it points to.
func (f *Files) Stat(ctx context.Context, name string) (FileInfo, error) {
	return operate(ctx, f, "stat", func(d driver.Files) (FileInfo, error) { return d.Stat(ctx, name) }, nil)
}

// List describes what is in a directory, sorted by name.
func (f *Files) List(ctx context.Context, name string) ([]FileInfo, error) {
	return operate(ctx, f, "list", func(d driver.Files) ([]FileInfo, error) {
		list, err := d.List(ctx, name)
		slices.SortFunc(list, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
		return list, err
	}, nil)
}

// Mkdir makes a directory with its parents. One that exists is no error.
func (f *Files) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	return f.do(ctx, "mkdir", func(d driver.Files) error { return d.Mkdir(ctx, name, mode) })
}

// Remove removes a file or an empty directory; recursive, a whole tree.
func (f *Files) Remove(ctx context.Context, name string, recursive bool) error {
	return f.do(ctx, "remove", func(d driver.Files) error { return d.Remove(ctx, name, recursive) })
}

// Rename moves a file within the sandbox.
func (f *Files) Rename(ctx context.Context, from, to string) error {
	return f.do(ctx, "rename", func(d driver.Files) error { return d.Rename(ctx, from, to) })
}

func (f *Files) do(ctx context.Context, op string, do func(driver.Files) error) error {
	_, err := operate(ctx, f, op, func(d driver.Files) (struct{}, error) { return struct{}{}, do(d) }, nil)
	return err
}

// operate runs one file operation as an operation of the sandbox. undo gives
// up what it returned when the Record cannot be kept.
func operate[T any](ctx context.Context, f *Files, name string, do func(driver.Files) (T, error), undo func(T) error) (T, error) {
	op := f.s.begin(name, Cmd{})
	var zero T
	if !f.s.rt.info.Can(driver.CanFiles) {
		return zero, op.end(ctx, driver.Unsupported("files", "the backend has no files", "pass data by Stdin and stdout"), nil)
	}
	v, err := do(f.s.sb.Files())
	if moved, ok := any(v).(archive.Report); ok {
		op.record.Files, op.record.Bytes = moved.Files, moved.Bytes
	}
	var back func() error
	if err == nil && undo != nil {
		back = func() error { return undo(v) }
	}
	if err := op.end(ctx, err, back); err != nil {
		return zero, err
	}
	return v, nil
}
