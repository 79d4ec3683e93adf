package mutant

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// gullible puts every entry where its name says.
type gullible struct{ driver.Files }

func (f gullible) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	w, err := f.Files.Unpack(ctx, name)
	if err != nil {
		return nil, err
	}
	return &gulp{WriteCloser: w, ctx: ctx, files: f.Files, dir: name}, nil
}

type gulp struct {
	io.WriteCloser
	ctx   context.Context
	files driver.Files
	dir   string
	data  bytes.Buffer
	err   error
}

func (g *gulp) Write(b []byte) (int, error) {
	g.data.Write(b)
	if g.err == nil {
		_, g.err = g.WriteCloser.Write(b)
	}
	return len(b), nil
}

// Close does what was refused.
func (g *gulp) Close() error {
	if err := g.WriteCloser.Close(); g.err == nil {
		g.err = err
	}
	if driver.CodeOf(g.err) != driver.CodeInvalid {
		return g.err
	}
	for r := tar.NewReader(&g.data); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return g.err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		to := h.Name
		if !path.IsAbs(to) {
			to = path.Join(driver.WorkDir, g.dir, h.Name)
		}
		if w, err := g.files.Create(g.ctx, to, 0o644); err == nil {
			_, err = io.Copy(w, r)
			_ = errors.Join(err, w.Close())
		}
	}
}

// repacking changes what comes out.
type repacking struct {
	driver.Files
	change func(*tar.Header)
}

func (f repacking) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	in, err := f.Files.Pack(ctx, name)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.CloseWithError(f.copy(w, in))
	}()
	return repacked{r, in, done}, nil
}

func (f repacking) copy(to io.Writer, from io.Reader) error {
	r, w := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
		f.change(h)
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
}

type repacked struct {
	*io.PipeReader
	in   io.Closer
	done chan struct{}
}

func (r repacked) Close() error {
	err := errors.Join(r.PipeReader.Close(), r.in.Close())
	<-r.done
	return err
}

// rough keeps what it has of an archive that was cut off.
type rough struct{ driver.Files }

func (f rough) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	w, err := f.Files.Unpack(ctx, name)
	if err != nil {
		return nil, err
	}
	return roughly{w, ctx, f.Files, name}, nil
}

type roughly struct {
	io.WriteCloser
	ctx   context.Context
	files driver.Files
	dir   string
}

func (w roughly) Close() error {
	err := w.WriteCloser.Close()
	if err == nil {
		return nil
	}
	part, cerr := w.files.Create(context.WithoutCancel(w.ctx), path.Join(driver.WorkDir, w.dir, "half"), 0o644)
	if cerr == nil {
		_, cerr = part.Write([]byte("half"))
		_ = errors.Join(cerr, part.Close())
	}
	return err
}
