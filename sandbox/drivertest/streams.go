package drivertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var streams = []Check{
	{Name: "streams: no stdin is end of file (M46, M47)", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Copy)
		cmd.Timeout = 10 * time.Second
		out, err := t.run(s, cmd)
		if err == nil && (out.exit.Code != 0 || len(out.stdout) > 0) {
			err = fmt.Errorf("a program without stdin: %v", out)
		}
		return err
	})},
	{Name: "streams: stdin arrives whole, then ends (M48, M49)", Func: inside(func(t *trial, s driver.Sandbox) error {
		data := make([]byte, 1<<20)
		_, _ = rand.Read(data)
		cmd := t.cmd(Copy)
		cmd.Stdin = true
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		fed := make(chan error, 1)
		go func() {
			_, err := p.Stdin().Write(data)
			fed <- errors.Join(err, p.Stdin().Close())
		}()
		out, err := t.drain(p)
		err = errors.Join(err, <-fed)
		if err == nil && (!bytes.Equal(out.stdout, data) || out.exit.Code != 0) {
			err = fmt.Errorf("1 MiB in, %d bytes out, exit %+v", len(out.stdout), out.exit)
		}
		return err
	})},
	{Name: "streams: writing to a program that closed its stdin fails with EPIPE", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Deaf)
		cmd.Stdin = true
		p, err := t.background(s, cmd)
		if err != nil {
			return err
		}
		failed := make(chan error, 1)
		go func() {
			for block := make([]byte, 64<<10); ; {
				if _, err := p.Stdin().Write(block); err != nil {
					failed <- err
					return
				}
			}
		}()
		select {
		case err = <-failed:
			if !errors.Is(err, syscall.EPIPE) {
				return fmt.Errorf("%w, want EPIPE", err)
			}
		case <-time.After(soon):
			return errors.Join(errors.New("it goes on"), p.Kill(t), <-failed)
		}
		return p.Kill(t)
	})},
	{Name: "streams: stdout and stderr arrive apart (M63)", Func: inside(func(t *trial, s driver.Sandbox) error {
		out, err := t.run(s, t.cmd(Both, "to stdout", "to stderr"))
		if err == nil && (string(out.stdout) != "to stdout" || string(out.stderr) != "to stderr") {
			err = fmt.Errorf("%v", out)
		}
		return err
	})},
	{Name: "streams: output is bytes (M59)", Func: inside(func(t *trial, s driver.Sandbox) error {
		got, err := t.say(s, Bytes)
		if err == nil && len(got) != 256 {
			err = fmt.Errorf("256 bytes arrive as %d", len(got))
		}
		for i := range len(got) {
			if err == nil && got[i] != byte(i) {
				err = fmt.Errorf("byte %#x arrives as %#x", i, got[i])
			}
		}
		return err
	})},
	{Name: "streams: output larger than any buffer arrives whole (M79)", Func: inside(func(t *trial, s driver.Sandbox) error {
		const n = 16 << 20
		return t.flood(s, n)
	})},
	{Name: "streams: a reader that stops stops its program, not the neighbours (M76)", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := s.Start(t, t.cmd(Flood, fmt.Sprint(256<<20)))
		if err != nil {
			return err
		}
		if _, err := p.Recv(t); err != nil {
			return fmt.Errorf("the first piece: %w", err)
		}
		for range 3 {
			if err := t.flood(s, 1<<20); err != nil {
				return fmt.Errorf("the neighbour: %w", err)
			}
		}
		if err := t.running(p); err != nil {
			return fmt.Errorf("nobody read 256 MiB: %w", err)
		}
		return p.Kill(t)
	})},
	{Name: "streams: the result waits for nobody who holds the pipes (M39)", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := s.Start(t, t.cmd(Leave))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		exit, err := p.Wait(ctx)
		if err != nil || exit.Code != 0 {
			return fmt.Errorf("wait: %+v, %v", exit, err)
		}
		var text []byte
		for {
			c, err := p.Recv(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("recv: %w", err)
			}
			text = append(text, c.Data...)
		}
		if string(text) != "hi\n" {
			return fmt.Errorf("it said %q", text)
		}
		return nil
	})},
	{Name: "streams: the result comes without its output being read", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := s.Start(t, t.cmd(Both, "out", "err"))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 {
			return fmt.Errorf("wait: %+v, %v", exit, err)
		}
		out, err := t.drain(p)
		if err == nil && (string(out.stdout) != "out" || string(out.stderr) != "err") {
			err = fmt.Errorf("and afterwards: %v", out)
		}
		return err
	})},
	{Name: "streams: a reader that gives up leaves the program running, and says so plainly", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, 100*time.Millisecond)
		defer cancel()
		for err == nil { // the end of a line may still come
			_, err = p.Recv(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) || driver.CodeOf(err) != "" {
			return fmt.Errorf("recv: %v (code %q), want the context's own error", err, driver.CodeOf(err))
		}
		if err := t.running(p); err != nil {
			return err
		}
		return p.Kill(t)
	})},
}
