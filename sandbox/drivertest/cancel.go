package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// left is a context whose caller has left.
func left(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// cancellation asks what is left where a caller leaves, and what he is told:
// his context's own error, since nobody else's is true.
var cancellation = []Check{
	{Name: "cancel: a start leaves nothing, wherever it is cut off (M176)", Func: inside(func(t *trial, s driver.Sandbox) error {
		const cuts = 8
		file := func(i int) string { return fmt.Sprintf("/tmp/beat%d", i) }
		for i := range cuts {
			ctx, cancel := context.WithTimeout(t, time.Duration(i)*700*time.Microsecond) // a start takes about a millisecond
			p, err := s.Start(ctx, t.cmd(Beat, file(i)))
			cancel()
			if err == nil {
				err = p.Kill(t)
			} else if err = plain(fmt.Sprintf("cut %d", i), err, context.DeadlineExceeded); err == nil {
				continue
			}
			if err != nil {
				return err
			}
		}
		sizes := func() (sum int, err error) {
			for i := range cuts {
				out, rerr := t.run(s, t.cmd(Copy, file(i))) // which may not exist
				sum, err = sum+len(out.stdout), errors.Join(err, rerr)
			}
			return sum, err
		}
		before, err := sizes()
		if err != nil {
			return err
		}
		return t.eventually(soon/2, "something of a cut-off start goes on", func() (bool, error) {
			if err := t.pause(quiet); err != nil {
				return false, err
			}
			after, err := sizes()
			still := after == before
			before = after
			return still, err
		})
	})},
	{Name: "cancel: a wait that is given up says so plainly, and can be had again", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, 50*time.Millisecond)
		defer cancel()
		_, err = p.Wait(ctx)
		if err := plain("wait", err, context.DeadlineExceeded); err != nil {
			return err
		}
		if err := t.running(p); err != nil {
			return err
		}
		if err := p.Kill(t); err != nil {
			return err
		}
		exit, err := p.Wait(t)
		if err == nil && exit.Signal != "SIGKILL" {
			err = fmt.Errorf("it ended as %+v", exit)
		}
		return err
	})},
	{Name: "cancel: a program's kill is done, or can be asked again", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		if err := p.Kill(left(t)); err != nil {
			if err := plain("kill", err, context.Canceled); err != nil {
				return err
			}
			if err := p.Kill(t); err != nil {
				return fmt.Errorf("again: %w", err)
			}
		}
		return t.bounded("its end", func() error {
			exit, err := p.Wait(t)
			if err == nil && exit.Signal != "SIGKILL" {
				err = fmt.Errorf("it ended as %+v", exit)
			}
			return err
		})
	})},
	{Name: "cancel: a sandbox's kill is done, or can be asked again (M113)", Func: inside(func(t *trial, s driver.Sandbox) error {
		// Half a kill may be called a leak; it is the context's error too.
		if err := s.Kill(left(t)); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("kill: %w", err)
		}
		if err := s.Kill(t); err != nil {
			return fmt.Errorf("again: %w", err)
		}
		return t.gone(s)
	})},
	{Name: "cancel: a list ends where its caller leaves, and says so plainly", Capability: driver.CanList, Kind: Proof, Func: inside(func(t *trial, _ driver.Sandbox) error {
		n := 0
		for _, err := range t.b.List(left(t), nil) {
			if n++; n > 1 {
				return errors.New("it goes on after an error")
			}
			if err := plain("list", err, context.Canceled); err != nil {
				return err
			}
		}
		if n == 0 {
			return errors.New("it lists nothing, and calls that all there is")
		}
		return nil
	})},
	{Name: "cancel: joining for a caller who has left says so plainly", Capability: driver.CanAttach, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		_, err := t.b.Attach(left(t), s.Status().ID)
		return plain("attach", err, context.Canceled)
	})},
	onFiles("cancel: no file operation does anything for a caller who has left", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		if err := errors.Join(t.writeFile(f, "file", []byte("kept"), 0o644), f.Mkdir(t, "dir", 0o755)); err != nil {
			return err
		}
		before, err := names(t, f, ".")
		if err != nil {
			return err
		}
		ctx := left(t)
		_, _, open := f.Open(ctx, "file")
		w, create := f.Create(ctx, "new", 0o644)
		if create == nil {
			create = w.Close()
		}
		_, stat := f.Stat(ctx, "file")
		_, list := f.List(ctx, ".")
		for op, err := range map[string]error{
			"open": open, "create": create, "stat": stat, "list": list, "mkdir": f.Mkdir(ctx, "newdir", 0o755),
			"remove": f.Remove(ctx, "file", false), "rename": f.Rename(ctx, "file", "renamed"),
		} {
			if err := plain(op, err, context.Canceled); err != nil {
				return err
			}
		}
		return t.sameNames(f, ".", before)
	}),
	onFiles("cancel: a reader in mid-file reads no further, and is told plainly", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		const size = 4 << 20
		if err := t.writeFile(f, "big", make([]byte, size), 0o644); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		r, _, err := f.Open(ctx, "big")
		if err != nil {
			return err
		}
		defer r.Close()
		block := make([]byte, 4096)
		if _, err := r.Read(block); err != nil {
			return err
		}
		cancel()
		return t.bounded("reading on", func() error {
			for n := 0; ; { // what is on its way may still come
				more, err := r.Read(block)
				if n += more; err != nil {
					return plain(fmt.Sprintf("after %d bytes", n), err, context.Canceled)
				}
			}
		})
	}),
	onFiles("cancel: a writer in mid-file leaves nothing, under no name, and is told plainly", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		before, err := names(t, f, ".")
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		w, err := f.Create(ctx, "cut", 0o644)
		if err != nil {
			return err
		}
		block := make([]byte, 64<<10)
		if _, err := w.Write(block); err != nil {
			return err
		}
		cancel()
		err = t.bounded("writing on", func() error {
			var err error
			for range 128 { // 8 MiB
				if _, err = w.Write(block); err != nil {
					break
				}
			}
			return plain("write", err, context.Canceled)
		})
		if err != nil {
			return err
		}
		if err := plain("close", w.Close(), context.Canceled); err != nil {
			return err
		}
		return t.sameNames(f, ".", before)
	}),
}
