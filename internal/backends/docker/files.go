package docker

import (
	"context"
	"io"
	"io/fs"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// files joins the guest on first use, then lets it do everything.
type files struct{ s *sandbox }

var _ driver.Files = files{}

func (f files) guest(ctx context.Context) (driver.Files, error) {
	c, err := f.s.join(ctx)
	if err != nil {
		return nil, err
	}
	return c.Files(), nil
}

func (f files) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return nil, driver.FileInfo{}, err
	}
	return g.Open(ctx, name)
}

func (f files) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return nil, err
	}
	return g.Create(ctx, name, mode)
}

func (f files) Stat(ctx context.Context, name string) (driver.FileInfo, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return driver.FileInfo{}, err
	}
	return g.Stat(ctx, name)
}

func (f files) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return nil, err
	}
	return g.List(ctx, name)
}

func (f files) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	g, err := f.guest(ctx)
	if err != nil {
		return err
	}
	return g.Mkdir(ctx, name, mode)
}

func (f files) Remove(ctx context.Context, name string, recursive bool) error {
	g, err := f.guest(ctx)
	if err != nil {
		return err
	}
	return g.Remove(ctx, name, recursive)
}

func (f files) Rename(ctx context.Context, from, to string) error {
	g, err := f.guest(ctx)
	if err != nil {
		return err
	}
	return g.Rename(ctx, from, to)
}

func (f files) Pack(ctx context.Context, name string) (io.ReadCloser, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return nil, err
	}
	return g.Pack(ctx, name)
}

func (f files) Unpack(ctx context.Context, name string) (io.WriteCloser, error) {
	g, err := f.guest(ctx)
	if err != nil {
		return nil, err
	}
	return g.Unpack(ctx, name)
}
