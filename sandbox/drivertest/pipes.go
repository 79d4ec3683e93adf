package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// count is what the probe of that name prints.
func count(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.Bytes()
}

// flood has a program print n bytes, and fails unless all come.
func (t *trial) flood(s driver.Sandbox, n int) error {
	p, err := s.Start(t, t.cmd(Flood, fmt.Sprint(n)))
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	got := 0
	for err == nil {
		var c driver.Chunk
		c, err = p.Recv(t)
		got += len(c.Data)
	}
	if !isEOF(err) {
		return fmt.Errorf("after %d of %d bytes: %w", got, n, err)
	}
	exit, err := p.Wait(t)
	if err == nil && (got != n || exit.Code != 0) {
		err = fmt.Errorf("%d of %d bytes, %+v", got, n, exit)
	}
	return err
}

// pipes asks finer questions of input and output.
var pipes = []Check{
	{Name: "streams: output keeps its order, and each piece is the reader's own", Func: inside(func(t *trial, s driver.Sandbox) error {
		const n = 40000
		p, err := s.Start(t, t.cmd(Count, fmt.Sprint(n)))
		if err != nil {
			return err
		}
		var pieces [][]byte // kept, not copied: what comes later must not change them
		for {
			c, err := p.Recv(t)
			if isEOF(err) {
				break
			}
			if err != nil {
				return err
			}
			pieces = append(pieces, c.Data)
		}
		got, want := bytes.Join(pieces, nil), count(n)
		if !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			return fmt.Errorf("%d bytes of %d, wrong from byte %d", len(got), len(want), at)
		}
		return nil
	})},
	{Name: "streams: what a program writes last is there, however fast it ends (M65)", Func: inside(func(t *trial, s driver.Sandbox) error {
		const n = 6000 // fits into a pipe, so that the program need not wait for its reader
		want := count(n)
		for range 10 {
			p, err := s.Start(t, t.cmd(Count, fmt.Sprint(n)))
			if err != nil {
				return err
			}
			if err := t.bounded("its end", func() error { _, err := p.Wait(t); return err }); err != nil {
				return err
			}
			if out, err := t.drain(p); err != nil || !bytes.Equal(out.stdout, want) || out.exit.Code != 0 {
				return fmt.Errorf("%d of %d bytes, %+v, %v", len(out.stdout), len(want), out.exit, err)
			}
		}
		return nil
	})},
	{Name: "streams: stdin arrives as it is written, not only at its end", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Copy)
		cmd.Stdin = true
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		for _, word := range []string{"one", "two"} {
			if _, err := p.Stdin().Write([]byte(word)); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t, soon)
			c, err := p.Recv(ctx)
			cancel()
			if err != nil || string(c.Data) != word {
				return fmt.Errorf("%q comes back as %q, %v", word, c.Data, err)
			}
		}
		if err := p.Stdin().Close(); err != nil {
			return err
		}
		out, err := t.drain(p)
		if err == nil && (out.exit.Code != 0 || len(out.stdout) > 0) {
			err = fmt.Errorf("at its end: %v", out)
		}
		return err
	})},
	{Name: "streams: a program that reads no stdin keeps its exit code", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Exit, "3")
		cmd.Stdin = true
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		err = t.bounded("writing to it", func() error {
			var err error
			for block := make([]byte, 64<<10); err == nil; {
				_, err = p.Stdin().Write(block)
			}
			return err
		})
		if !errors.Is(err, syscall.EPIPE) {
			return fmt.Errorf("%w, want EPIPE", err)
		}
		out, err := t.drain(p)
		if err == nil && out.exit.Code != 3 {
			err = fmt.Errorf("%v", out)
		}
		return err
	})},
	{Name: "streams: a program that was given no stdin cannot be written to", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		err = t.bounded("writing to it", func() error {
			_, err := p.Stdin().Write([]byte("x"))
			return err
		})
		if !errors.Is(err, syscall.EPIPE) {
			return fmt.Errorf("%w, want EPIPE", err)
		}
		return p.Kill(t)
	})},
	{Name: "streams: eight at once, each gets all of its own", Func: inside(func(t *trial, s driver.Sandbox) error {
		const n = 8
		errs := make(chan error, n)
		for i := range n {
			go func() { errs <- t.flood(s, 1<<20+i) }()
		}
		var all error
		for range n {
			all = errors.Join(all, <-errs)
		}
		return all
	})},
}
