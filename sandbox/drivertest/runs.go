package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// runs asks what package sandbox promises of every backend: it can be no
// better than the driver under it.
var runs = []Check{
	{Name: "output: read to its end, it is whole and the program has ended", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		const size = 2 << 20
		p, err := s.Start(t, t.order(Flood, fmt.Sprint(size)))
		if err != nil {
			return err
		}
		n := 0
		for c, err := range p.Output() {
			if err != nil {
				return err
			}
			n += len(c.Data)
		}
		exit, err := p.Wait()
		if err == nil && (n != size || exit.Code != 0) {
			err = fmt.Errorf("%d of %d bytes, %+v", n, size, exit)
		}
		return err
	})},
	{Name: "output: who leaves the loop early ends the program and all it started (M78)", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		p, err := t.daemon(t, s, "/tmp/beat")
		if err != nil {
			return err
		}
		if err := t.bounded("leaving", func() error {
			for _, err := range p.Output() {
				return err // at "ready"
			}
			return nil
		}); err != nil {
			return err
		}
		return t.stops(inner, "/tmp/beat")
	})},
	{Name: "output: a panic in the loop ends the program and all it started", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		p, err := t.daemon(t, s, "/tmp/beat")
		if err != nil {
			return err
		}
		if err := t.bounded("leaving", func() error {
			defer func() { _ = recover() }()
			for _, err := range p.Output() {
				panic(fmt.Sprint("as a caller's own code may: ", err))
			}
			return nil
		}); err != nil {
			return err
		}
		return t.stops(inner, "/tmp/beat")
	})},
	{Name: "output: a caller who leaves in mid-stream is told plainly, and nothing goes on (M77)", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		p, err := t.daemon(ctx, s, "/tmp/beat")
		if err != nil {
			return err
		}
		err = t.bounded("the loop's end", func() error {
			var last error
			for _, err := range p.Output() {
				cancel()
				last = err
			}
			return truly("the last of the loop", last, context.Canceled)
		})
		if err != nil {
			return err
		}
		if err := t.bounded("wait", func() error { _, err := p.Wait(); return truly("wait", err, context.Canceled) }); err != nil {
			return err
		}
		return t.stops(inner, "/tmp/beat")
	})},
	{Name: "output: characters cut between its pieces come whole as text (M60)", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		want := string(bytes.Repeat([]byte("aé€😀"), 12000)) // 120 KB: no piece of a power of two ends with a character
		p, err := s.Start(t, t.order(Both, want, ""))
		if err != nil {
			return err
		}
		var got []byte
		for piece, err := range p.Text() {
			if err != nil {
				return err
			}
			got = append(got, piece.Text...)
		}
		if string(got) != want {
			return fmt.Errorf("%d bytes of text come as %d, or others", len(want), len(got))
		}
		return nil
	})},
	{Name: "wait: what nobody has read is dropped, and the exit comes", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		p, err := s.Start(t, t.order(Flood, fmt.Sprint(2<<20)))
		if err != nil {
			return err
		}
		return t.bounded("wait", func() error {
			exit, err := p.Wait()
			if err == nil && (exit.Code != 0 || exit.Signal != "") {
				err = fmt.Errorf("it ended as %+v", exit)
			}
			return err
		})
	})},
	{Name: "run: a caller who leaves is told plainly, and nothing of the program goes on", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		answer := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, t.order(Daemon, "/tmp/beat"))
			answer <- err
		}()
		berr := t.beats(inner, "/tmp/beat")
		cancel()
		if err := errors.Join(berr, t.bounded("run", func() error { return truly("run", <-answer, context.Canceled) })); err != nil {
			return err
		}
		return t.stops(inner, "/tmp/beat")
	})},
	{Name: "run: the command's own timeout is told from the caller's, and what it said is kept", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		ctx, cancel := context.WithTimeout(t, time.Second)
		defer cancel()
		_, err := s.Run(ctx, t.order(Hang))
		if err := truly("the caller's", err, context.DeadlineExceeded); err != nil {
			return err
		}
		cmd := t.order(Hang)
		cmd.Timeout = brief
		res, err := s.Run(t, cmd)
		if err := wantCode("the command's", err, driver.CodeTimeout); err != nil {
			return err
		}
		if res == nil || !res.Exit.TimedOut || string(bytes.TrimSpace(res.Stdout)) != "ready" {
			return fmt.Errorf("of a command that timed out this is left: %+v", res)
		}
		return nil
	})},
	{Name: "run: output beyond what is wanted is cut and said to be, not the program", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		cmd := t.order(Flood, fmt.Sprint(2<<20))
		cmd.MaxOutput = 1000
		res, err := s.Run(t, cmd)
		if err == nil && (len(res.Stdout) != 1000 || !res.Truncated || res.Exit.Code != 0) {
			err = fmt.Errorf("%d bytes, truncated %v, %+v", len(res.Stdout), res.Truncated, res.Exit)
		}
		return err
	})},
	{Name: "run: a sandbox that somebody else ended is gone, which is no timeout and no success (M50, M51)", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		answer := make(chan error, 1)
		go func() {
			_, err := s.Run(t, t.order(Daemon, "/tmp/beat"))
			answer <- err
		}()
		berr := t.beats(inner, "/tmp/beat")
		kerr := inner.Kill(t)
		err := t.bounded("run", func() error { return wantCode("the run", <-answer, driver.CodeGone) })
		if err := errors.Join(berr, kerr, err); err != nil {
			return err
		}
		_, err = s.Run(t, t.order(Exit, "0"))
		return wantCode("the next run", err, driver.CodeGone)
	})},
	{Name: "run: the one call gives the result and leaves nothing", Func: with(func(t *trial) error {
		spec, token := t.wish()
		res, err := t.runtime().Run(t, spec, t.order(Both, "out", "err"))
		if err != nil {
			return err
		}
		if string(res.Stdout) != "out" || string(res.Stderr) != "err" || res.Exit.Code != 0 {
			return fmt.Errorf("%q, %q, %+v", res.Stdout, res.Stderr, res.Exit)
		}
		return t.unlisted(token)
	})},
	{Name: "run: the one call leaves nothing, wherever it is cut off (M112)", Func: with(func(t *trial) error {
		spec, token := t.wish()
		begun := time.Now()
		if _, err := t.runtime().Run(t, spec, t.order(Exit, "0")); err != nil {
			return err
		}
		const cuts = 6
		step := max(time.Since(begun), time.Millisecond) / cuts
		for i := range cuts {
			ctx, cancel := context.WithTimeout(t, step*time.Duration(i))
			_, err := t.runtime().Run(ctx, spec, t.order(Hang))
			cancel()
			if err := truly(fmt.Sprintf("cut at %v", step*time.Duration(i)), err, context.DeadlineExceeded); err != nil {
				return err
			}
			if err := t.unlisted(token); err != nil {
				return fmt.Errorf("cut at %v: %w", step*time.Duration(i), err)
			}
		}
		return nil
	})},
	{Name: "close: it outlives its caller's context and takes everything with it", Func: with(func(t *trial) error {
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		spec, token := t.wish()
		s, err := t.runtime().Create(ctx, spec)
		if err != nil {
			return err
		}
		t.finally(func(context.Context) error { return s.Close() })
		// Nobody reads these, and their pipes are full.
		for range 4 {
			if _, err := s.Start(ctx, t.order(Flood, fmt.Sprint(64<<20))); err != nil {
				return err
			}
		}
		cancel()
		if err := t.bounded("close", s.Close); err != nil {
			return err
		}
		_, err = s.Run(t, t.order(Exit, "0"))
		return errors.Join(wantCode("run afterwards", err, driver.CodeGone), t.unlisted(token))
	})},
	{Name: "attach: another Runtime joins a sandbox, runs and reads in it, and closes it", Capability: driver.CanAttach, Kind: Proof, Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		return t.second(func(b driver.Backend) error {
			joined, err := sandbox.New(b, sandbox.Options{Unguarded: "a check of drivertest", Grace: soon}).Attach(t, s.ID())
			if err != nil {
				return err
			}
			if _, err := s.Run(t, t.order(Write, "/tmp/file")); err != nil {
				return err
			}
			if res, err := joined.Run(t, t.order(Copy, "/tmp/file")); err != nil || string(res.Stdout) != "x" {
				return fmt.Errorf("the other reads %+v, %v", res, err)
			}
			if err := joined.Close(); err != nil {
				return fmt.Errorf("close: %w", err)
			}
			return t.gone(inner)
		})
	})},
	{Name: "handle: many goroutines use one at once", Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		const n = 16
		errs := make(chan error, n)
		for i := range n {
			go func() { errs <- t.turn(s, i) }()
		}
		var all error
		for range n {
			all = errors.Join(all, <-errs)
		}
		return all
	})},
}

// turn is what one of many does with a sandbox: everything once.
func (t *trial) turn(s *sandbox.Sandbox, i int) error {
	word := fmt.Sprintf("word-%d", i)
	res, err := s.Run(t, t.order(Args, word))
	if err != nil || string(res.Stdout) != word+"\x00" {
		return fmt.Errorf("%s: %+v, %v", word, res, err)
	}
	p, err := s.Start(t, t.order(Hang))
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("%s: kill: %w", word, err)
	}
	if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
		return fmt.Errorf("%s: killed, it is %+v, %v", word, exit, err)
	}
	if !t.b.Info().Can(driver.CanFiles) {
		return nil
	}
	name := "/tmp/" + word
	if err := s.Files().Write(t, name, []byte(word), 0o600); err != nil {
		return err
	}
	got, err := s.Files().Read(t, name)
	if err == nil && string(got) != word {
		err = fmt.Errorf("%s holds %q", name, got)
	}
	return err
}

// unlisted fails unless nothing of an order is there any more, now.
func (t *trial) unlisted(token string) error {
	if !t.b.Info().Can(driver.CanList) {
		return nil
	}
	there, err := t.listed(t.b, token)
	if err == nil && there {
		err = errors.New("its sandbox is still there")
	}
	return err
}
