package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A List is bounded in entries and in bytes of names, so that a directory of
// any size costs the host bounded memory.
const (
	maxList      = 1 << 17
	maxListBytes = 16 << 20
)

// Files reaches the sandbox's files with the workload's own rights.
func (c *Client) Files() driver.Files { return files{c} }

type files struct{ c *Client }

var _ driver.Files = files{}

// resolve makes a name absolute and clean. Names are POSIX paths whatever the
// host's system is.
func resolve(field, name string) (string, error) {
	switch {
	case name == "":
		return "", driver.Invalid(field, "the name is empty", `use "." for the directory /work`)
	case strings.IndexByte(name, 0) >= 0:
		return "", driver.Invalid(field, "the name contains a NUL byte", "remove it")
	case len(name) > 4096:
		return "", driver.Invalid(field, fmt.Sprintf("the name has %d bytes", len(name)), "names have at most 4096 bytes")
	case path.IsAbs(name):
		return path.Clean(name), nil
	}
	return path.Join(driver.WorkDir, name), nil
}

// begin sends a request and returns its stream.
func (f files) begin(ctx context.Context, op string, m *wire.FileRequest) (*stream, error) {
	var err error
	if m.Name, err = resolve("name", m.Name); err == nil && m.Op == wire.FileRename {
		m.To, err = resolve("to", m.To)
	}
	if err != nil {
		return nil, f.fail(ctx, op, m.Name, err)
	}
	s, err := f.c.open(ctx, wire.OpFiles, m)
	return s, f.fail(ctx, op, m.Name, err)
}

// fail adds the file's name to an error. An answer that stops half-way, from
// a guest that is there, is its helper's end.
func (f files) fail(ctx context.Context, op, name string, err error) error {
	if (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && !f.c.lost() {
		err = &wire.Failure{Code: string(driver.CodeExhausted), Text: "what works on files in the sandbox ended early: a program there ended it, or left it no room",
			Hint: "end the programs in the sandbox, or raise resources.pids or resources.memory_mib"}
	}
	err = f.c.fail(ctx, op, err)
	if e, ok := errors.AsType[*driver.Error](err); ok {
		whole := *e
		whole.Op, whole.Err = op, &fs.PathError{Op: op, Path: name, Err: e.Err}
		return &whole
	}
	return err
}

// reply reads one answer of the helper.
func reply(s io.Reader) ([]wire.FileInfo, error) {
	var r wire.FileReply
	if err := wire.ReadReply(s, &r); err != nil {
		return nil, err
	}
	if r.Failure.Code != "" {
		return nil, &r.Failure
	}
	return r.Infos, nil
}

// simple performs an operation that is one request and one answer.
func (f files) simple(ctx context.Context, op string, m wire.FileRequest) ([]wire.FileInfo, error) {
	s, err := f.begin(ctx, op, &m)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer bind(ctx, s.SetDeadline)()
	infos, err := reply(s)
	return infos, f.fail(ctx, op, m.Name, err)
}

// Open reads a regular file. The end of ctx ends the reading too.
func (f files) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	r, infos, err := f.read(ctx, "open", wire.FileRequest{Op: wire.FileOpen, Name: name})
	if err != nil {
		return nil, driver.FileInfo{}, err
	}
	if len(infos) != 1 {
		_ = r.Close()
		return nil, driver.FileInfo{}, f.fail(ctx, "open", r.name, wire.ErrMalformed)
	}
	return r, infoOf(infos[0]), nil
}

// read performs an operation that answers with content.
func (f files) read(ctx context.Context, op string, m wire.FileRequest) (*reader, []wire.FileInfo, error) {
	s, err := f.begin(ctx, op, &m)
	if err != nil {
		return nil, nil, err
	}
	release := bind(ctx, s.SetDeadline)
	infos, err := reply(s)
	if err != nil {
		release()
		_ = s.Close()
		return nil, nil, f.fail(ctx, op, m.Name, err)
	}
	return &reader{f: f, ctx: ctx, name: m.Name, s: s, release: release, frames: wire.NewFrames(s)}, infos, nil
}

type reader struct {
	f       files
	ctx     context.Context
	name    string
	s       *stream
	release func()
	frames  *wire.Frames
	once    sync.Once
}

func (r *reader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	_, n, err := r.frames.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.f.fail(r.ctx, "read", r.name, err)
	}
	return n, err
}

func (r *reader) Close() error {
	r.once.Do(func() { r.release(); _ = r.s.Close() })
	return nil
}

// Create writes a regular file, see driver.Files. A link of that name is
// replaced, not followed.
func (f files) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	return f.write(ctx, "create", wire.FileRequest{Op: wire.FileCreate, Name: name, Mode: uint32(mode.Perm())})
}

// write performs an operation that takes content.
func (f files) write(ctx context.Context, op string, m wire.FileRequest) (io.WriteCloser, error) {
	s, err := f.begin(ctx, op, &m)
	if err != nil {
		return nil, err
	}
	w := &writer{f: f, ctx: ctx, op: op, name: m.Name, s: s, release: bind(ctx, s.SetDeadline), answered: make(chan struct{})}
	// The first answer says that it can be written; the second comes at the
	// end, or as soon as something is wrong.
	if _, err := reply(s); err != nil {
		w.release()
		_ = s.Close()
		return nil, f.fail(ctx, op, m.Name, err)
	}
	answer := func() {
		_, w.answer = reply(s)
		close(w.answered)
		_ = s.Close() // frees a Write that waits
	}
	if !f.c.task(answer) {
		answer() // at once: the connection is closed
	}
	return w, nil
}

// Pack gives a directory as a tar stream, see driver.Files.
func (f files) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, err := f.read(ctx, "pack", wire.FileRequest{Op: wire.FilePack, Name: name})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Unpack writes a tar stream into a directory, see driver.Files.
func (f files) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	return f.write(ctx, "unpack", wire.FileRequest{Op: wire.FileUnpack, Name: name})
}

type writer struct {
	f        files
	ctx      context.Context
	op, name string
	s        *stream
	release  func()
	answered chan struct{}
	answer   error // after answered
	err      error // of a write
	closed   bool
}

func (w *writer) Write(b []byte) (int, error) {
	if w.closed {
		return 0, fs.ErrClosed
	}
	if w.err != nil {
		return 0, w.err
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := wire.WriteFrames(w.s, wire.TagStdout, b)
	if err != nil {
		w.err = w.cause(err)
	}
	return n, w.err
}

// cause prefers what the helper said to what the stream did.
func (w *writer) cause(err error) error {
	select {
	case <-w.answered:
		if w.answer != nil {
			err = w.answer
		}
	default:
	}
	return w.f.fail(w.ctx, "write", w.name, err)
}

// Close makes the file appear, unless a Write failed or ctx ended.
func (w *writer) Close() error {
	if w.closed {
		return fs.ErrClosed
	}
	w.closed = true
	defer w.release()
	if w.err == nil && w.ctx.Err() != nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		_ = w.s.Close() // without the end frame: the helper drops what it has
		return w.err
	}
	if _, err := wire.WriteFrames(w.s, wire.TagEnd, nil); err != nil {
		_ = w.s.Close()
		return w.cause(err)
	}
	<-w.answered
	return w.f.fail(w.ctx, w.op, w.name, w.answer)
}

// Stat describes a file, a link itself.
func (f files) Stat(ctx context.Context, name string) (driver.FileInfo, error) {
	infos, err := f.simple(ctx, "stat", wire.FileRequest{Op: wire.FileStat, Name: name})
	if err == nil && len(infos) != 1 {
		err = f.fail(ctx, "stat", name, wire.ErrMalformed)
	}
	if err != nil {
		return driver.FileInfo{}, err
	}
	return infoOf(infos[0]), nil
}

// List describes what is in a directory, in no order.
func (f files) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	m := wire.FileRequest{Op: wire.FileList, Name: name}
	s, err := f.begin(ctx, "list", &m)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer bind(ctx, s.SetDeadline)()
	out, bytes := []driver.FileInfo{}, 0
	for {
		infos, err := reply(s)
		if err != nil {
			return nil, f.fail(ctx, "list", m.Name, err)
		}
		if len(infos) == 0 {
			return out, nil
		}
		for _, i := range infos {
			bytes += len(i.Name) + len(i.Link)
			out = append(out, infoOf(i))
		}
		if len(out) > maxList || bytes > maxListBytes {
			return nil, f.fail(ctx, "list", m.Name, driver.Invalid("name", fmt.Sprintf("the directory has more than %d entries, or %d MiB of names", maxList, maxListBytes>>20), "list it with a program in the sandbox"))
		}
	}
}

// Mkdir makes a directory with its parents.
func (f files) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	_, err := f.simple(ctx, "mkdir", wire.FileRequest{Op: wire.FileMkdir, Name: name, Mode: uint32(mode.Perm())})
	return err
}

// Remove removes a file, a link itself, or a directory.
func (f files) Remove(ctx context.Context, name string, recursive bool) error {
	_, err := f.simple(ctx, "remove", wire.FileRequest{Op: wire.FileRemove, Name: name, Recursive: recursive})
	return err
}

// Rename moves from to to, replacing a file there.
func (f files) Rename(ctx context.Context, from, to string) error {
	_, err := f.simple(ctx, "rename", wire.FileRequest{Op: wire.FileRename, Name: from, To: to})
	return err
}

// infoOf believes nothing: a name is a base name, a size not negative.
func infoOf(i wire.FileInfo) driver.FileInfo {
	return driver.FileInfo{
		Name: path.Base(i.Name), Size: max(i.Size, 0), Mode: fs.FileMode(i.Mode), ModTime: time.Unix(0, i.ModTime), Link: i.Link,
	}
}
