package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// trees asks how programs end together with what they started, and how many
// of them get on with one another.
var trees = []Check{
	{Name: "exec: kill takes children in process groups of their own (M44)", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Jobs, "/tmp/beat"))
		if err != nil {
			return err
		}
		if err := t.beats(s, "/tmp/beat"); err != nil {
			return err
		}
		if err := p.Kill(t); err != nil {
			return err
		}
		return t.stops(s, "/tmp/beat")
	})},
	{Name: "exec: kill ends what ignores every signal that can be ignored", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Stubborn))
		if err != nil {
			return err
		}
		if err := p.Kill(t); err != nil {
			return err
		}
		return t.bounded("its end", func() error {
			exit, err := p.Wait(t)
			if err == nil && (exit.Signal != "SIGKILL" || exit.Code != 137 || exit.TimedOut) {
				err = fmt.Errorf("it ended as %+v", exit)
			}
			return err
		})
	})},
	{Name: "exec: a timeout is one program's own, and no handler holds it up (M58)", Func: inside(func(t *trial, s driver.Sandbox) error {
		neighbour, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		short := func(p Probe, args ...string) driver.Cmd {
			cmd := t.cmd(p, args...)
			cmd.Timeout = brief
			return cmd
		}
		begun := time.Now()
		early, err := t.run(s, short(Exit, "3"))
		if err != nil || early.exit.Code != 3 || early.exit.TimedOut {
			return fmt.Errorf("a program that ended within its timeout: %v, %v", early, err)
		}
		p, err := s.Start(t, short(Stubborn))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, brief+soon)
		defer cancel()
		exit, err := p.Wait(ctx)
		if err == nil && (!exit.TimedOut || exit.Signal != "SIGKILL") {
			err = fmt.Errorf("it ended as %+v", exit)
		}
		if err != nil {
			return err
		}
		if took := time.Since(begun); took < brief {
			return fmt.Errorf("it ended after %v", took)
		}
		if err := t.running(neighbour); err != nil {
			return fmt.Errorf("the neighbour, who had a minute: %w", err)
		}
		_, err = t.say(s, Exit, "0")
		return err
	})},
	{Name: "exec: how a program ended is the same for everybody who asks, and again", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := s.Start(t, t.cmd(Raise, "TERM"))
		if err != nil {
			return err
		}
		const n = 4
		type answer struct {
			exit driver.Exit
			err  error
		}
		answers := make(chan answer, n)
		for range n {
			go func() {
				exit, err := p.Wait(t)
				answers <- answer{exit, err}
			}()
		}
		for range n {
			var a answer
			if err := t.bounded("wait", func() error { a = <-answers; return a.err }); err != nil {
				return err
			}
			if a.exit.Signal != "SIGTERM" || a.exit.Code != 143 {
				return fmt.Errorf("one hears %+v", a.exit)
			}
		}
		if _, err := t.drain(p); err != nil {
			return err
		}
		if exit, err := p.Wait(t); err != nil || exit.Signal != "SIGTERM" {
			return fmt.Errorf("asked again: %+v, %v", exit, err)
		}
		for range 2 {
			if c, err := p.Recv(t); !isEOF(err) {
				return fmt.Errorf("after the end of its output: %+v, %v", c, err)
			}
		}
		return nil
	})},
	{Name: "exec: the hundredth program runs as the first did", Func: inside(func(t *trial, s driver.Sandbox) error {
		for i := range 100 {
			out, err := t.run(s, t.cmd(Exit, fmt.Sprint(i)))
			if err != nil || out.exit.Code != i {
				return fmt.Errorf("program %d: %v, %v", i, out, err)
			}
		}
		return nil
	})},
	{Name: "exec: arguments of 200 KiB arrive whole (M71)", Func: inside(func(t *trial, s driver.Sandbox) error {
		args := make([]string, 0, 101)
		args = append(args, strings.Repeat("long", 25<<10)) // 100 KiB in one
		for i := range 100 {
			args = append(args, fmt.Sprintf("%d %s", i, strings.Repeat("x", 1<<10)))
		}
		got, err := t.say(s, Args, args...)
		if want := strings.Join(args, "\x00") + "\x00"; err == nil && got != want {
			err = fmt.Errorf("%d bytes arrive as %d, or others", len(want), len(got))
		}
		return err
	})},
	{Name: "exec: a directory that is not there is refused by name, and nothing runs", Func: inside(func(t *trial, s driver.Sandbox) error {
		for _, dir := range []string{"/no/such", "nowhere"} {
			cmd := t.cmd(Write, "/tmp/ran")
			cmd.Dir = dir
			p, err := s.Start(t, cmd)
			if err == nil {
				return errors.Join(fmt.Errorf("in %q it was started", dir), p.Kill(t))
			}
			if err := wantCode(dir, err, driver.CodeNotFound); err != nil {
				return err
			}
			if e := driver.Problems(err); len(e) == 0 || e[0].Field != "dir" {
				return fmt.Errorf("%w: its field is not dir", err)
			}
		}
		if out, err := t.run(s, t.cmd(Copy, "/tmp/ran")); err != nil || out.exit.Code == 0 {
			return fmt.Errorf("it ran: %v, %v", out, err)
		}
		return nil
	})},
	{Name: "exec: many that nobody reads keep nobody else from running", Func: inside(func(t *trial, s driver.Sandbox) error {
		var idle []driver.Process
		for range 20 {
			p, err := s.Start(t, t.cmd(Flood, fmt.Sprint(64<<20)))
			if err != nil {
				return err
			}
			idle = append(idle, p)
		}
		for range 3 {
			if err := t.flood(s, 1<<20); err != nil {
				return fmt.Errorf("one more: %w", err)
			}
		}
		var err error
		for _, p := range idle {
			err = errors.Join(err, t.bounded("kill", func() error { return p.Kill(t) }))
		}
		return err
	})},
}
