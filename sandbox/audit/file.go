package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Sync is when a file's lines are forced to the disk.
type Sync uint8

const (
	// SyncEach forces each line before Record returns: what was answered
	// survives the machine's crash.
	SyncEach Sync = iota
	// SyncClose forces them at Close. What the system has not written by
	// itself is lost when the machine crashes, not when the process does.
	SyncClose
)

// FileOptions configure a File. The zero value is the safe one.
type FileOptions struct{ Sync Sync }

// File is a [sandbox.Sink] that appends each Record to a file as one line of a
// hash chain; see the package's comment. It is safe for concurrent use.
//
// Record fails, and keeps failing, with code conflict once the file is not
// what was opened any more, and with code unavailable once a line could not be
// forced to the disk, since nobody can tell then what is on it. When a line
// could not be written (a full disk), it leaves no part of it and may be tried
// again.
type File struct {
	name string
	sync Sync

	mu   sync.Mutex
	f    disk
	size int64 // of what is known to be good
	head Head
	err  error // why nothing more is written
}

// disk is what a File needs of an [os.File].
type disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

var _ sandbox.Sink = (*File)(nil)

// OpenFile opens or creates the file for this process alone. A new file has
// mode 0600; one that others may read or write is refused. Only the last line
// is looked at, [Verify] looks at all. When a crash left it half written, an
// entry that holds what there was takes its place; nothing before it is
// touched.
//
// Codes: conflict (another process has it open), invalid (it is no file of
// this kind, or others may read it), unavailable.
func OpenFile(name string, opts FileOptions) (*File, error) {
	if opts.Sync > SyncClose {
		return nil, &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit", Field: "sync", Err: fmt.Errorf("%d is no policy", opts.Sync), Hint: "use audit.SyncEach or audit.SyncClose"}
	}
	_, missing := os.Stat(name)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable(err, "make the directory, or allow this user to write there")
	}
	file := &File{name: name, sync: opts.Sync, f: f}
	if err := file.open(f, errors.Is(missing, fs.ErrNotExist)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return file, nil
}

func (f *File) open(of *os.File, made bool) error {
	fi, err := of.Stat()
	if err != nil {
		return unavailable(err, "")
	}
	if !fi.Mode().IsRegular() {
		return &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit", Field: f.name, Err: errors.New("it is no regular file"), Hint: "name a file that is used for nothing else"}
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 { // there, modes say nothing
		return &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit", Field: f.name, Err: fmt.Errorf("its mode is %#o", fi.Mode().Perm()), Hint: "chmod 600 " + f.name}
	}
	if err := lock(of); err != nil {
		return err
	}
	if made && f.sync == SyncEach {
		if err := syncDir(filepath.Dir(f.name)); err != nil {
			return unavailable(err, "")
		}
	}
	if fi, err = of.Stat(); err != nil { // it was another's until now
		return unavailable(err, "")
	}
	return f.recover(fi.Size())
}

// recover finds the chain's head in the last line and repairs a torn one.
func (f *File) recover(size int64) error {
	from := max(0, size-2*maxLine)
	tail := make([]byte, size-from)
	if _, err := f.f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return unavailable(err, "")
	}
	whole := bytes.LastIndexByte(tail, '\n') + 1
	torn := tail[whole:]
	f.head, f.size = Head{Hash: genesis}, from+int64(whole)
	if whole > 0 {
		line := tail[bytes.LastIndexByte(tail[:whole-1], '\n')+1 : whole-1]
		e, err := parse(line)
		if err != nil {
			return f.stranger(fmt.Errorf("its last line is not one of ours: %w", err))
		}
		f.head = Head{e.Seq, hash(line)}
	} else if from > 0 {
		return f.stranger(errors.New("its last line is too long to be one of ours"))
	}
	if len(torn) == 0 {
		return nil
	}
	// A crash may also leave zeros where the data did not reach the disk.
	start := f.head.start()
	written := bytes.TrimRight(torn, "\x00")
	if n := min(len(start), len(written)); string(written[:n]) != start[:n] || len(torn) > maxRecord {
		return f.stranger(errors.New("its end is not the beginning of a line of ours"))
	}
	// The repair is longer than what it takes the place of: one write does it,
	// and if that one is torn as well, it is repaired in the same way.
	line, head, err := f.head.next(nil, &repair{Time: time.Now().UTC(), Cut: torn})
	if err != nil {
		return unavailable(err, "")
	}
	if err := f.write(line, head); err != nil {
		return unavailable(err, "")
	}
	return nil
}

func (f *File) stranger(err error) error {
	return &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit", Field: f.name, Err: err, Hint: "nothing was changed; look at it with sandboxio audit verify, and name another file"}
}

// Record appends r. It keeps the caller waiting for the disk, unless ctx has
// ended before.
func (f *File) Record(ctx context.Context, r sandbox.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.err != nil {
		return f.err
	}
	line, head, err := f.head.next(r, nil)
	if err != nil {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: "audit", Err: err}
	}
	if len(line) > maxRecord {
		return &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit", Err: fmt.Errorf("a record of %d bytes", len(line)), Hint: "a record has less than 512 KiB"}
	}
	if err := f.untouched(); err != nil {
		f.err = err
		return err
	}
	if err := f.write(line, head); err != nil {
		return unavailable(err, "make room on the disk that holds "+f.name)
	}
	return nil
}

// write puts one line behind the good ones, or leaves no trace of it.
func (f *File) write(line []byte, head Head) error {
	if _, err := f.f.WriteAt(line, f.size); err != nil {
		if terr := f.f.Truncate(f.size); terr != nil {
			f.err = unavailable(fmt.Errorf("half a line could not be taken back: %w", terr), "end the process and open the file again; that repairs it")
		}
		return err
	}
	if f.sync == SyncEach {
		if err := f.f.Sync(); err != nil {
			f.err = unavailable(fmt.Errorf("the disk does not keep what it was given: %w", err), "look after the disk, then open the file again")
			return err
		}
	}
	f.size += int64(len(line))
	f.head = head
	return nil
}

// untouched tells whether the file is still what this process has written.
func (f *File) untouched() error {
	moved := func(what string) error {
		return &sandbox.Error{Code: sandbox.CodeConflict, Op: "audit", Field: f.name, Err: errors.New(what), Hint: "end the process before the file is moved or rotated, then start it again"}
	}
	mine, err := f.f.Stat()
	if err != nil {
		return unavailable(err, "")
	}
	there, err := os.Stat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return moved("it was moved or removed while it was open")
	case err != nil:
		return unavailable(err, "")
	case !os.SameFile(mine, there):
		return moved("another file took its place while it was open")
	case mine.Size() != f.size:
		return moved(fmt.Sprintf("somebody else wrote it: it has %d bytes, %d were written", mine.Size(), f.size))
	}
	return nil
}

// Head is where the chain is. Noted elsewhere, it shows later that nothing up
// to here was changed.
func (f *File) Head() Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Close forces what was written to the disk and gives the file back. Closing
// again does nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(f.err, fs.ErrClosed) {
		return nil
	}
	f.err = unavailable(fs.ErrClosed, "close the file after the last sandbox")
	if err := errors.Join(f.f.Sync(), f.f.Close()); err != nil {
		return unavailable(err, "")
	}
	return nil
}

func taken(name string) error {
	return &sandbox.Error{Code: sandbox.CodeConflict, Op: "audit", Field: name, Err: errors.New("another process writes it"), Hint: "give each process a file of its own"}
}

func unavailable(err error, hint string) error {
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "audit", Err: err, Hint: hint}
}
