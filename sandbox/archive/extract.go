package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
)

// Options say how Extract unpacks. The zero value is safe for an archive from
// anybody.
type Options struct {
	Limits Limits
	// Refuse is asked about every name before anything is done with it; its
	// error ends the extraction. nil refuses none.
	Refuse func(name string) error
	// Mode gives the permission bits for what the archive wants, which may be
	// a directory's mode. nil takes them as they are; what is not a permission
	// bit is dropped in any case.
	Mode func(want fs.FileMode) fs.FileMode
}

// Extract unpacks an archive into root and reports what it did, on an error
// too: what was unpacked before stays. A file takes the place of whatever has
// its name, unless that is a directory; a directory that exists is entered and
// keeps its mode. Modification times of files are kept to the second.
//
// Somebody may change the directory meanwhile: nothing they put there leads
// out of root.
func Extract(ctx context.Context, r io.Reader, root *os.Root, opts Options) (Report, error) {
	in := NewReader(reading{ctx, r}, opts.Limits)
	x := &extraction{in: in, opts: opts, place: place{root: root, made: map[string]fs.FileMode{}}, fresh: empty(root), buf: make([]byte, len(nothing))}
	if x.opts.Refuse == nil {
		x.opts.Refuse = func(string) error { return nil }
	}
	if x.opts.Mode == nil {
		x.opts.Mode = func(want fs.FileMode) fs.FileMode { return want }
	}
	err := x.run()
	if lerr := x.place.leave(0); err == nil {
		err = lerr
	}
	return in.report, err
}

type extraction struct {
	in    *Reader
	opts  Options
	place place
	fresh bool // the directory was empty
	buf   []byte
}

func (x *extraction) run() error {
	for {
		e, err := x.in.Next()
		if errors.Is(err, io.EOF) {
			return x.modes()
		}
		if err != nil {
			return err
		}
		if err := x.opts.Refuse(e.Name); err != nil {
			return err
		}
		if !possible(e.Name) {
			x.in.report.impossible(e)
			continue
		}
		if e.Mode.IsDir() {
			err = x.dir(e)
		} else {
			err = x.file(e)
		}
		if x.in.src.err != nil {
			return x.in.src.err // it is about no file
		}
		if err != nil {
			return about(e.Name, err)
		}
	}
}

// impossible takes back what was counted of e.
func (r *Report) impossible(e Entry) {
	if e.Mode.IsDir() {
		r.Dirs--
	} else {
		r.Files--
		r.Bytes -= e.Size
	}
	r.leaveOut(e.Name, "no name on "+runtime.GOOS)
}

// possible tells whether the host's system can have a file of that name. On
// POSIX systems every name that came so far is one.
func possible(name string) bool {
	if runtime.GOOS != "windows" {
		return true
	}
	_, err := filepath.Localize(name)
	return err == nil
}

// dir makes a directory. Its mode is set at the end, when nothing more has to
// be put into it.
func (x *extraction) dir(e Entry) error {
	_, err := x.place.enter(e.Name)
	if _, made := x.place.made[e.Name]; made {
		x.place.made[e.Name] = x.opts.Mode(e.Mode).Perm()
	}
	return err
}

// modes sets the modes of the directories that were made, the innermost first.
func (x *extraction) modes() error {
	names := slices.Sorted(maps.Keys(x.place.made))
	for _, name := range slices.Backward(names) {
		at, err := x.place.enter(name)
		if err == nil {
			err = chmod(at, x.place.made[name])
		}
		if err != nil {
			return about(name, err)
		}
	}
	return nil
}

// file unpacks a file beside its name and gives it the name at the end.
func (x *extraction) file(e Entry) error {
	dir, base := path.Split(e.Name)
	at, err := x.place.enter(path.Clean(dir))
	if err != nil {
		return err
	}
	if err := x.free(at, e.Name, base); err != nil {
		return err
	}
	f, tmp, err := beside(at)
	if err != nil {
		return err
	}
	err = x.fill(f, e)
	if err == nil {
		err = f.Chmod(x.opts.Mode(e.Mode).Perm())
	}
	if err == nil {
		err = touch(at, tmp, f, e.ModTime)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = at.Rename(tmp, base)
	}
	if err != nil {
		_ = at.Remove(tmp) // what went wrong first is what matters
	}
	return err
}

// free makes sure that a file may take its name.
func (x *extraction) free(at *os.Root, name, base string) error {
	there, err := at.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case there.IsDir():
		return refused(name, "is a file in the archive and a directory here")
	case x.fresh && !x.in.again:
		return refused(name, "and another name in the archive are one on this system")
	}
	return nil
}

// fill writes the content, keeping the holes of a sparse file.
func (x *extraction) fill(f *os.File, e Entry) error {
	if e.Sparse { // a size that the disk does not take is refused at once
		if err := f.Truncate(e.Size); err != nil {
			return err
		}
	}
	for done := int64(0); done < e.Size; {
		n, err := io.ReadFull(x.in, x.buf[:min(int64(len(x.buf)), e.Size-done)])
		if err != nil {
			return x.in.malformed(err)
		}
		if e.Sparse && zeros(x.buf[:n]) {
			_, err = f.Seek(int64(n), io.SeekCurrent)
		} else {
			_, err = f.Write(x.buf[:n])
		}
		if err != nil {
			return err
		}
		done += int64(n)
	}
	return nil
}

// nothing is a block of a hole.
var nothing [64 << 10]byte

func zeros(b []byte) bool { return bytes.Equal(b, nothing[:len(b)]) }

func empty(root *os.Root) bool {
	f, err := root.Open(".")
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// beside makes a file of a name that nobody has.
func beside(at *os.Root) (*os.File, string, error) {
	for range 100 {
		name := TempName()
		f, err := at.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
	return nil, "", fmt.Errorf("no name is free beside the file: %w", fs.ErrExist)
}

// reading ends with its context.
type reading struct {
	ctx context.Context
	r   io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
