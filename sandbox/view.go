package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// FS is a read-only view of the sandbox's directory dir for package io/fs, at
// any moment as the sandbox is then; it passes [testing/fstest.TestFS] on a
// directory that nobody changes. It also has the methods of [fs.ReadDirFS],
// [fs.StatFS], [fs.ReadFileFS] and [fs.ReadLinkFS], each one operation.
//
// Links are followed as a program in the sandbox follows them, out of dir too.
// Names that are not UTF-8 are listed and cannot be opened, as package io/fs
// has it. ctx ends everything that is done with the view.
func (f *Files) FS(ctx context.Context, dir string) fs.FS { return view{f, ctx, dir} }

type view struct {
	files *Files
	ctx   context.Context
	dir   string
}

var (
	_ fs.ReadDirFS  = view{}
	_ fs.StatFS     = view{}
	_ fs.ReadFileFS = view{}
	_ fs.ReadLinkFS = view{}
)

// look performs one operation on name.
func look[T any](v view, op, name string, do func(d driver.Files, name string) (T, error), undo func(T) error) (T, error) {
	var zero T
	if !fs.ValidPath(name) {
		return zero, v.fail(op, name, fs.ErrInvalid)
	}
	t, err := operate(v.ctx, v.files, op, func(d driver.Files) (T, error) { return do(d, path.Join(v.dir, name)) }, undo)
	return t, v.fail(op, name, err)
}

// fail is an error about name, which the program in the sandbox may have
// chosen to hold a secret.
func (v view) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: v.files.s.known.add(nil).String(name), Err: err}
}

func (v view) Open(name string) (fs.File, error) {
	return look(v, "open", name, func(d driver.Files, full string) (fs.File, error) {
		r, info, err := d.Open(v.ctx, full)
		if err == nil {
			return &viewFile{r: reader{r, v.files.s}, info: named(info, name)}, nil
		}
		if v.ctx.Err() != nil || errors.Is(err, CodeGone) {
			return nil, err
		}
		if info, serr := follow(v.ctx, d, full); serr == nil && info.Mode.IsDir() {
			return &viewDir{v: v, name: name, info: named(info, name)}, nil
		}
		return nil, err
	}, func(f fs.File) error { return f.Close() })
}

func (v view) Stat(name string) (fs.FileInfo, error) {
	return look(v, "stat", name, func(d driver.Files, full string) (fs.FileInfo, error) {
		info, err := follow(v.ctx, d, full)
		return named(info, name), err
	}, nil)
}

func (v view) Lstat(name string) (fs.FileInfo, error) {
	return look(v, "stat", name, func(d driver.Files, full string) (fs.FileInfo, error) {
		info, err := d.Stat(v.ctx, full)
		return named(info, name), err
	}, nil)
}

func (v view) ReadLink(name string) (string, error) {
	return look(v, "readlink", name, func(d driver.Files, full string) (string, error) {
		info, err := d.Stat(v.ctx, full)
		if err == nil && info.Mode.Type() != fs.ModeSymlink {
			err = driver.Invalid("name", "is no symbolic link", "read a link")
		}
		return info.Link, err
	}, nil)
}

func (v view) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, v.fail("read", name, fs.ErrInvalid)
	}
	b, err := v.files.Read(v.ctx, path.Join(v.dir, name))
	return b, v.fail("read", name, err)
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, v.fail("readdir", name, fs.ErrInvalid)
	}
	list, err := v.files.List(v.ctx, path.Join(v.dir, name))
	if err != nil {
		return nil, v.fail("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(list))
	for i, info := range list {
		out[i] = fs.FileInfoToDirEntry(viewInfo{info})
	}
	return out, nil
}

// follow describes what name leads to, links followed as the kernel does:
// ".." after a link is the parent of where that leads.
func follow(ctx context.Context, d driver.Files, name string) (FileInfo, error) {
	info, err := d.Stat(ctx, name)
	if err != nil || info.Mode.Type() != fs.ModeSymlink {
		return info, err
	}
	if !path.IsAbs(name) {
		name = path.Join(driver.WorkDir, name)
	}
	at, todo := "/", strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		if info, err = d.Stat(ctx, path.Join(at, part)); err != nil {
			return info, err
		}
		if info.Mode.Type() != fs.ModeSymlink {
			at = path.Join(at, part)
			continue
		}
		if links++; links > 40 {
			return info, &Error{Code: CodeInvalid, Field: "name", Err: syscall.ELOOP}
		}
		if path.IsAbs(info.Link) {
			at = "/"
		}
		todo = append(strings.Split(info.Link, "/"), todo...)
	}
	return d.Stat(ctx, at)
}

// viewInfo is a FileInfo with the methods of fs.FileInfo.
type viewInfo struct{ info FileInfo }

// named gives info the name it was asked for by, which a link's target has
// not.
func named(info FileInfo, name string) viewInfo {
	info.Name = path.Base(name)
	return viewInfo{info}
}

func (i viewInfo) Name() string       { return i.info.Name }
func (i viewInfo) Size() int64        { return i.info.Size }
func (i viewInfo) Mode() fs.FileMode  { return i.info.Mode }
func (i viewInfo) ModTime() time.Time { return i.info.ModTime }
func (i viewInfo) IsDir() bool        { return i.info.Mode.IsDir() }
func (i viewInfo) Sys() any           { return i.info }
func (i viewInfo) String() string     { return fs.FormatFileInfo(i) }

type viewFile struct {
	r    io.ReadCloser
	info viewInfo
}

func (f *viewFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *viewFile) Read(b []byte) (int, error) { return f.r.Read(b) }
func (f *viewFile) Close() error               { return f.r.Close() }

// viewDir lists its directory when it is first asked to.
type viewDir struct {
	v    view
	name string
	info viewInfo

	mu     sync.Mutex
	listed bool
	left   []fs.DirEntry
}

var _ fs.ReadDirFile = (*viewDir)(nil)

func (d *viewDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *viewDir) Close() error               { return nil }
func (d *viewDir) Read([]byte) (int, error) {
	return 0, d.v.fail("read", d.name, syscall.EISDIR)
}

func (d *viewDir) ReadDir(n int) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.listed {
		var err error
		if d.left, err = d.v.ReadDir(d.name); err != nil {
			return nil, err
		}
		d.listed = true
	}
	if n > 0 && len(d.left) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.left) {
		n = len(d.left)
	}
	out := d.left[:n:n]
	d.left = d.left[n:]
	return out, nil
}
