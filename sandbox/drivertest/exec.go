package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// inside makes a check of what can be seen in one fresh sandbox.
func inside(f func(t *trial, s driver.Sandbox) error) func(context.Context, driver.Backend, Harness) error {
	return with(func(t *trial) error {
		s, err := t.create()
		if err != nil {
			return err
		}
		return f(t, s)
	})
}

var exec = []Check{
	{Name: "exec: arguments arrive as they were given (M45, M98)", Func: inside(func(t *trial, s driver.Sandbox) error {
		args := []string{"", " ", "a b", `"`, `'`, "$HOME", "`id`", "*", "-n", "--", ";exit 3", "a\nb", "é", "\xff\xfe", `\`, "", "A=b"}
		got, err := t.say(s, Args, args...)
		if want := strings.Join(args, "\x00") + "\x00"; err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})},
	{Name: "exec: exit codes arrive (M72)", Func: inside(func(t *trial, s driver.Sandbox) error {
		for _, code := range []int{0, 1, 2, 42, 128, 255} {
			out, err := t.run(s, t.cmd(Exit, fmt.Sprint(code)))
			if err != nil {
				return err
			}
			if out.exit.Code != code || out.exit.Signal != "" || out.exit.TimedOut {
				return fmt.Errorf("%d arrives as %v", code, out)
			}
		}
		return nil
	})},
	{Name: "exec: a signal is told from an exit code", Func: inside(func(t *trial, s driver.Sandbox) error {
		out, err := t.run(s, t.cmd(Raise, "TERM"))
		if err == nil && (out.exit.Code != 143 || out.exit.Signal != "SIGTERM") {
			err = fmt.Errorf("SIGTERM arrives as %v", out)
		}
		return err
	})},
	{Name: "exec: a missing program exits 127, one that may not run 126 (M68)", Func: inside(func(t *trial, s driver.Sandbox) error {
		for p, want := range map[Probe]int{Missing: 127, Unrunnable: 126} {
			out, err := t.run(s, t.cmd(p))
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			if out.exit.Code != want || out.exit.Signal != "" {
				return fmt.Errorf("%s: %v, want exit %d", p, out, want)
			}
		}
		return nil
	})},
	{Name: "exec: programs start in /work, or where they are told", Func: inside(func(t *trial, s driver.Sandbox) error {
		for dir, want := range map[string]string{"": "/work", "/tmp": "/tmp", ".": "/work", "../tmp": "/tmp"} {
			cmd := t.cmd(Pwd)
			cmd.Dir = dir
			out, err := t.run(s, cmd)
			if err != nil {
				return err
			}
			if got := strings.TrimSuffix(string(out.stdout), "\n"); got != want {
				return fmt.Errorf("dir %q is %q, want %q (%v)", dir, got, want, out)
			}
		}
		return nil
	})},
	{Name: "exec: programs run side by side, each with its own output", Func: inside(func(t *trial, s driver.Sandbox) error {
		const n = 8
		errs := make(chan error, n)
		for i := range n {
			go func() {
				word := fmt.Sprintf("word-%d", i)
				got, err := t.say(s, Args, word)
				if err == nil && got != word+"\x00" {
					err = fmt.Errorf("%s says %q", word, got)
				}
				errs <- err
			}()
		}
		var all error
		for range n {
			all = errors.Join(all, <-errs)
		}
		return all
	})},
	{Name: "exec: a program ends at its timeout, with all it started (M53, M54)", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Daemon, "/tmp/beat")
		cmd.Timeout = brief
		begun := time.Now()
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, cmd.Timeout+soon)
		defer cancel()
		exit, err := p.Wait(ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("after %v: %w", time.Since(begun), err), p.Kill(t))
		}
		if took := time.Since(begun); took < cmd.Timeout {
			return fmt.Errorf("it ended after %v, %+v", took, exit)
		}
		if !exit.TimedOut || exit.Code != 137 || exit.Signal != "SIGKILL" {
			return fmt.Errorf("it ended as %+v", exit)
		}
		return t.stops(s, "/tmp/beat")
	})},
	{Name: "exec: kill takes what left its session, not its neighbour (M40, M42, M43)", Func: inside(func(t *trial, s driver.Sandbox) error {
		neighbour, err := t.background(s, t.cmd(Daemon, "/tmp/neighbour"))
		if err != nil {
			return err
		}
		p, err := t.background(s, t.cmd(Daemon, "/tmp/beat"))
		if err != nil {
			return err
		}
		if err := p.Kill(t); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		exit, err := p.Wait(ctx)
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if exit.Signal != "SIGKILL" || exit.Code != 137 || exit.TimedOut {
			return fmt.Errorf("it ended as %+v", exit)
		}
		if err := t.stops(s, "/tmp/beat"); err != nil {
			return err
		}
		if err := t.running(neighbour); err != nil {
			return fmt.Errorf("the neighbour: %w", err)
		}
		if err := t.beats(s, "/tmp/neighbour"); err != nil {
			return fmt.Errorf("the neighbour's child: %w", err)
		}
		return p.Kill(t) // killing one that has ended succeeds
	})},
	{Name: "exec: a cancelled start starts nothing and says so plainly", Func: inside(func(t *trial, s driver.Sandbox) error {
		ctx, cancel := context.WithCancel(t)
		cancel()
		p, err := s.Start(ctx, t.cmd(Beat, "/tmp/beat"))
		if err == nil {
			return errors.Join(errors.New("a program was started for a caller who had left"), p.Kill(t))
		}
		if !errors.Is(err, context.Canceled) || driver.CodeOf(err) != "" {
			return fmt.Errorf("%v (code %q), want the context's own error", err, driver.CodeOf(err))
		}
		if err := t.pause(quiet); err != nil { // time to beat
			return err
		}
		out, err := t.run(s, t.cmd(Copy, "/tmp/beat"))
		if err == nil && out.exit.Code == 0 {
			err = errors.New("it ran")
		}
		return err
	})},
	{Name: "exec: a malformed command is refused by name", Func: inside(func(t *trial, s driver.Sandbox) error {
		for field, cmd := range map[string]driver.Cmd{
			"args":              {Timeout: time.Minute},
			"timeout":           {Args: t.h.Programs.Argv(Exit, "0")},
			"args[1]":           {Args: []string{"x", "a\x00b"}, Timeout: time.Minute},
			`env["HTTP_PROXY"]`: {Args: t.h.Programs.Argv(Exit, "0"), Timeout: time.Minute, Env: map[string]string{"HTTP_PROXY": "x"}},
		} {
			p, err := s.Start(t, cmd)
			if err == nil {
				return errors.Join(fmt.Errorf("%s: it was started", field), p.Kill(t))
			}
			if err := wantField(err, driver.CodeInvalid, field); err != nil {
				return err
			}
		}
		return nil
	})},
}

// wantField fails unless err has a problem of that code at that field or in
// it, with a fix.
func wantField(err error, code driver.Code, field string) error {
	for _, p := range driver.Problems(err) {
		if strings.HasPrefix(p.Field, field) && p.Code == code && p.Hint != "" {
			return nil
		}
	}
	return fmt.Errorf("%v; want code %q with a hint at %q", err, code, field)
}
