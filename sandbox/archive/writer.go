package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Writer makes an archive. It is for one goroutine.
type Writer struct {
	w   io.Writer
	tar *tar.Writer
	buf []byte
}

// NewWriter writes to w, in blocks of 512 bytes and more.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, tar: tar.NewWriter(w)} }

// ErrShrank is what Add says of content that ended before e.Size.
var ErrShrank = errors.New("it became shorter while it was read")

// Add adds one thing. Of a regular file it takes e.Size bytes of content, and
// no more if there are more: a file that grows is carried as long as it was.
// Of everything else content is nil; links, devices and the like are told of,
// for the receiver to report. Permission bits are kept, all other bits of the
// mode and owners are not. Content that is an *os.File comes from its
// beginning, and its holes are kept where the system tells of them.
func (w *Writer) Add(e Entry, content io.Reader) error {
	return w.add(context.Background(), e, content)
}

func (w *Writer) add(ctx context.Context, e Entry, content io.Reader) error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	if !e.Mode.IsRegular() {
		return w.tar.WriteHeader(headerOf(e))
	}
	if f, ok := content.(*os.File); ok && e.Size >= worthwhile {
		if data, ok := spans(f, e.Size); ok {
			return w.addSparse(ctx, e, f, data)
		}
	}
	return w.addFile(ctx, e, content)
}

func headerOf(e Entry) *tar.Header {
	h := &tar.Header{Typeflag: typeflag(e.Mode), Name: e.Name, Linkname: e.Link, Mode: int64(e.Mode.Perm()), ModTime: e.ModTime.Truncate(time.Second)}
	if e.Mode.IsDir() {
		h.Name += "/"
	}
	return h
}

func (w *Writer) addFile(ctx context.Context, e Entry, content io.Reader) error {
	h := headerOf(e)
	h.Size = e.Size
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	return w.copy(ctx, w.tar, e, content, e.Size)
}

// Close ends the archive. Without it the archive is cut off.
func (w *Writer) Close() error { return w.tar.Close() }

// Write writes the directories and regular files of src to w as an archive,
// and reports what it left out: links, which could lead out of src, devices,
// and names that are not UTF-8, which package io/fs cannot ask for.
func Write(ctx context.Context, w io.Writer, src fs.FS) (Report, error) {
	a := NewWriter(w)
	var report Report
	err := fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == "." {
			return err
		}
		if !fs.ValidPath(name) {
			report.leaveOut(name, "name is not UTF-8")
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return report.add(ctx, a, src, name, d)
	})
	if err == nil {
		err = a.Close()
	}
	return report, err
}

func (r *Report) add(ctx context.Context, a *Writer, src fs.FS, name string, d fs.DirEntry) error {
	if d.IsDir() {
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return fs.SkipDir // removed meanwhile
		}
		if err != nil {
			return err
		}
		r.Dirs++
		return a.add(ctx, Entry{Name: name, Mode: fs.ModeDir | info.Mode().Perm(), ModTime: info.ModTime()}, nil)
	}
	if !d.Type().IsRegular() {
		r.leaveOut(name, strange(typeflag(d.Type())))
		return nil
	}
	f, err := src.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // it was a moment ago
		r.leaveOut(name, strange(typeflag(info.Mode())))
		return nil
	}
	r.Files++
	r.Bytes += info.Size()
	return a.add(ctx, Entry{Name: name, Mode: info.Mode().Perm(), Size: info.Size(), ModTime: info.ModTime()}, f)
}
