package mutant

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// hasty puts every piece of a file in place at once.
type hasty struct{ driver.Files }

func (h hasty) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	w, err := h.Files.Create(ctx, name, mode)
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &hastyFile{h.Files, ctx, name, mode, nil}, nil
}

type hastyFile struct {
	files driver.Files
	ctx   context.Context
	name  string
	mode  fs.FileMode
	data  []byte
}

func (f *hastyFile) Write(p []byte) (int, error) {
	f.data = append(f.data, p...)
	return len(p), f.Close()
}

func (f *hastyFile) Close() error {
	w, err := f.files.Create(f.ctx, f.name, f.mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.data)
	return errors.Join(err, w.Close())
}

// modeless gives every file the same mode.
type modeless struct{ driver.Files }

func (f modeless) Create(ctx context.Context, name string, _ fs.FileMode) (io.WriteCloser, error) {
	return f.Files.Create(ctx, name, 0o644)
}

// listing shows something else than there is.
type listing struct {
	driver.Files
	show func([]driver.FileInfo) []driver.FileInfo
}

func (f listing) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	all, err := f.Files.List(ctx, name)
	return f.show(all), err
}

// answering has answers of its own where something is wrong.
type answering struct {
	driver.Files
	say func(error) error
}

func (f answering) answer(err error) error {
	if err != nil {
		err = f.say(err)
	}
	return err
}

func (f answering) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	r, info, err := f.Files.Open(ctx, name)
	if err != nil && f.say(err) == nil {
		return io.NopCloser(strings.NewReader("")), info, nil
	}
	return r, info, f.answer(err)
}

func (f answering) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	w, err := f.Files.Create(ctx, name, mode)
	if err != nil && f.say(err) == nil {
		return nowhere{}, nil
	}
	return w, f.answer(err)
}

func (f answering) Stat(ctx context.Context, name string) (driver.FileInfo, error) {
	info, err := f.Files.Stat(ctx, name)
	return info, f.answer(err)
}

func (f answering) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	all, err := f.Files.List(ctx, name)
	return all, f.answer(err)
}

func (f answering) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	return f.answer(f.Files.Mkdir(ctx, name, mode))
}

func (f answering) Remove(ctx context.Context, name string, recursive bool) error {
	return f.answer(f.Files.Remove(ctx, name, recursive))
}

func (f answering) Rename(ctx context.Context, from, to string) error {
	return f.answer(f.Files.Rename(ctx, from, to))
}

// nowhere is written to in vain.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// heedless goes on for callers who have left.
type heedless struct{ driver.Files }

func (f heedless) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	return f.Files.Open(context.WithoutCancel(ctx), name)
}

func (f heedless) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	return f.Files.Create(context.WithoutCancel(ctx), name, mode)
}

func (f heedless) Remove(ctx context.Context, name string, recursive bool) error {
	return f.Files.Remove(context.WithoutCancel(ctx), name, recursive)
}

func (f heedless) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	return f.Files.Pack(context.WithoutCancel(ctx), name)
}

func (f heedless) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	return f.Files.Unpack(context.WithoutCancel(ctx), name)
}

// opening reads directories as empty, and waits for a FIFO's writer.
type opening struct{ driver.Files }

func (f opening) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	info, err := f.Stat(ctx, name)
	if err == nil && info.Mode.Type() == fs.ModeNamedPipe {
		<-ctx.Done()
		return nil, info, ctx.Err()
	}
	if err == nil && info.Mode.IsDir() {
		return io.NopCloser(strings.NewReader("")), info, nil
	}
	return f.Files.Open(ctx, name)
}

// following writes to where a link leads.
type following struct{ driver.Files }

func (f following) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	if info, err := f.Stat(ctx, name); err == nil && info.Link != "" {
		name = info.Link
	}
	return f.Files.Create(ctx, name, mode)
}

// copying leaves the old name where it was.
type copying struct{ driver.Files }

func (f copying) Rename(ctx context.Context, from, to string) error {
	r, info, err := f.Open(ctx, from)
	if err != nil {
		return f.Files.Rename(ctx, from, to)
	}
	w, err := f.Create(ctx, to, info.Mode)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close(), r.Close())
}

// littering removes nothing.
type littering struct{ driver.Files }

func (f littering) Remove(ctx context.Context, name string, _ bool) error {
	_, err := f.Stat(ctx, name)
	return err
}

// mending makes a name of what is none.
type mending struct{ driver.Files }

func (f mending) Stat(ctx context.Context, name string) (driver.FileInfo, error) {
	return f.Files.Stat(ctx, cmp.Or(strings.ReplaceAll(name, "\x00", ""), "."))
}

// counting asks before it opens.
type counting struct {
	driver.Files
	ask func() error
}

func (f counting) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	if err := f.ask(); err != nil {
		return nil, driver.FileInfo{}, err
	}
	return f.Files.Open(ctx, name)
}

// lateness is what is still to be put in place.
type lateness struct {
	mu    sync.Mutex
	files map[driver.Files][]func() error
}

func (l *lateness) add(f driver.Files, put func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[driver.Files][]func() error{}
	}
	l.files[f] = append(l.files[f], put)
}

func (l *lateness) catchUp(f driver.Files) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, put := range l.files[f] {
		err = errors.Join(err, put())
	}
	delete(l.files, f)
	return err
}

// belated puts a file in place when files are next asked for.
type belated struct {
	driver.Files
	late *lateness
}

func (f belated) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	if err := f.late.catchUp(f.Files); err != nil {
		return nil, err
	}
	w, err := f.Files.Create(ctx, name, mode)
	if err != nil {
		return nil, err
	}
	return belatedFile{w, f}, nil
}

type belatedFile struct {
	io.WriteCloser
	f belated
}

func (w belatedFile) Close() error {
	w.f.late.add(w.f.Files, w.WriteCloser.Close)
	return nil
}

func (f belated) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	if err := f.late.catchUp(f.Files); err != nil {
		return nil, driver.FileInfo{}, err
	}
	return f.Files.Open(ctx, name)
}

func (f belated) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	if err := f.late.catchUp(f.Files); err != nil {
		return nil, err
	}
	return f.Files.List(ctx, name)
}

func (f belated) Stat(ctx context.Context, name string) (driver.FileInfo, error) {
	if err := f.late.catchUp(f.Files); err != nil {
		return driver.FileInfo{}, err
	}
	return f.Files.Stat(ctx, name)
}

func (f belated) Rename(ctx context.Context, from, to string) error {
	return errors.Join(f.late.catchUp(f.Files), f.Files.Rename(ctx, from, to))
}

func (f belated) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := f.late.catchUp(f.Files); err != nil {
		return nil, err
	}
	return f.Files.Pack(ctx, name)
}
