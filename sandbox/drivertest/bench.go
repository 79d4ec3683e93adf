package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Bench measures what every run pays: create to the first byte, one exec, and
// 10 MB through stdout.
func Bench(b *testing.B, h Harness) {
	b.Helper()
	backend, err := h.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := backend.Close(); err != nil {
			b.Error(err)
		}
	}()
	measure := func(name string, f func(b *testing.B, t *trial) error) {
		b.Run(name, func(b *testing.B) {
			err := with(func(t *trial) error { return f(b, t) })(b.Context(), backend, h)
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	measure("create-to-first-byte", func(b *testing.B, t *trial) error {
		b.Helper()
		for b.Loop() {
			s, err := t.b.Create(t, t.spec())
			if err != nil {
				return err
			}
			if err := firstByte(t, s); err != nil {
				return errors.Join(err, s.Kill(context.WithoutCancel(t)))
			}
			b.StopTimer()
			err = s.Kill(t)
			b.StartTimer()
			if err != nil {
				return err
			}
		}
		return nil
	})
	measure("exec", func(b *testing.B, t *trial) error {
		b.Helper()
		s, err := t.create()
		if err != nil {
			return err
		}
		for b.Loop() {
			if _, err := t.run(s, driver.Cmd{Args: t.h.Programs.Argv("true"), Timeout: driver.DefaultTimeout}); err != nil {
				return err
			}
		}
		return nil
	})
	measure("stdout-10MB", func(b *testing.B, t *trial) error {
		b.Helper()
		s, err := t.create()
		if err != nil {
			return err
		}
		const n = 10_000_000
		b.SetBytes(n)
		for b.Loop() {
			p, err := s.Start(t, t.cmd(Flood, fmt.Sprint(n)))
			if err != nil {
				return err
			}
			got := 0
			for {
				c, err := p.Recv(t)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return err
				}
				got += len(c.Data)
			}
			if got != n {
				return fmt.Errorf("%d of %d bytes", got, n)
			}
		}
		return nil
	})
}

func firstByte(t *trial, s driver.Sandbox) error {
	p, err := s.Start(t, t.cmd(Args, "x"))
	if err != nil {
		return err
	}
	_, err = p.Recv(t)
	return err
}
