package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ending asks what a sandbox keeps of its maker, and what everybody hears when
// it ends.
var ending = []Check{
	{Name: "create: a sandbox outlives the context that it was made with", Func: with(func(t *trial) error {
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		s, err := t.b.Create(ctx, t.spec())
		if err != nil {
			return err
		}
		t.keep(s)
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		cancel()
		return t.running(p)
	})},
	{Name: "create: what was ordered is not changed through the caller's maps afterwards", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Env = map[string]string{"WHOSE": "ordered"}
		want := maps.Clone(spec.Labels)
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		spec.Env["WHOSE"], spec.Labels["drivertest.n"] = "changed", "changed"
		if got, err := t.say(s, Getenv, "WHOSE"); err != nil || got != "ordered" {
			return fmt.Errorf("its environment is %q, %v", got, err)
		}
		s.Status().Labels["drivertest.n"] = "changed"
		if got := s.Status().Labels; !maps.Equal(got, want) {
			return fmt.Errorf("its labels are %v, not %v", got, want)
		}
		return nil
	})},
	{Name: "create: two sandboxes are two, and share no files (M121)", Control: true, Func: with(func(t *trial) error {
		one, err := t.create()
		if err != nil {
			return err
		}
		two, err := t.create()
		if err != nil {
			return err
		}
		if a, b := one.Status(), two.Status(); a.ID == b.ID || a.Name == b.Name || a.Facts.Instance == b.Facts.Instance {
			return fmt.Errorf("%+v and %+v", a, b)
		}
		for _, name := range []string{"/tmp/mark", "/work/mark"} {
			if _, err := t.say(one, Write, name); err != nil {
				return err
			}
			if out, err := t.run(two, t.cmd(Copy, name)); err != nil || len(out.stdout) > 0 {
				return fmt.Errorf("the other sees %s: %v, %v", name, out, err)
			}
		}
		return nil
	})},
	{Name: "kill: whoever waits for a program is told at once that its sandbox is gone", Func: inside(func(t *trial, s driver.Sandbox) error {
		hang, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		cmd := t.cmd(Deaf)
		cmd.Args, cmd.Stdin = t.h.Programs.Argv(Hang), true // it reads no stdin, and keeps it open
		full, err := t.background(s, cmd)
		if err != nil {
			return err
		}
		answers := make(chan error, 3)
		go func() {
			_, err := hang.Wait(t)
			answers <- wantCode("wait", err, driver.CodeGone)
		}()
		go func() {
			var err error
			for err == nil {
				_, err = hang.Recv(t)
			}
			answers <- wantCode("recv", err, driver.CodeGone)
		}()
		go func() {
			var err error
			for block := make([]byte, 64<<10); err == nil; {
				_, err = full.Stdin().Write(block)
			}
			answers <- nil // EPIPE or gone: what counts is that it answers
		}()
		if err := t.pause(100 * time.Millisecond); err != nil { // so that they wait; sooner is no harder
			return err
		}
		if err := s.Kill(t); err != nil {
			return err
		}
		for range cap(answers) {
			if err := t.bounded("one of wait, recv and write", func() error { return <-answers }); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "kill: what was handed out before says gone afterwards, and never hangs (M175)", Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		before := s.Status()
		if err := s.Kill(t); err != nil {
			return err
		}
		if after := s.Status(); after.ID != before.ID || after.Facts != before.Facts {
			return fmt.Errorf("its status was %+v and is %+v", before, after)
		}
		if err := t.bounded("kill of its program", func() error { return p.Kill(t) }); err != nil && driver.CodeOf(err) != driver.CodeGone {
			return fmt.Errorf("kill of its program: %w", err)
		}
		if e, ok := driver.As[driver.Extender](s); ok {
			err := t.bounded("extend", func() error { return e.Extend(t, before.Deadline.Add(-time.Second)) })
			if err := wantCode("extend", err, driver.CodeGone); err != nil {
				return err
			}
		}
		if t.b.Info().Can(driver.CanAttach) {
			_, err := t.b.Attach(t, before.ID)
			if err := wantCode("attach", err, driver.CodeGone, driver.CodeNotFound); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "kill: the files of what has ended are gone, open ones too", Capability: driver.CanFiles, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		f := s.Files()
		if err := t.writeFile(f, "file", make([]byte, 4<<20), 0o644); err != nil {
			return err
		}
		r, _, err := f.Open(t, "file")
		if err != nil {
			return err
		}
		defer r.Close()
		w, err := f.Create(t, "other", 0o644)
		if err != nil {
			return err
		}
		defer w.Close()
		if err := s.Kill(t); err != nil {
			return err
		}
		_, _, open := f.Open(t, "file")
		_, stat := f.Stat(t, "file")
		_, list := f.List(t, ".")
		for op, err := range map[string]error{"open": open, "stat": stat, "list": list} {
			if err := wantCode(op, err, driver.CodeGone); err != nil {
				return err
			}
		}
		// What was on its way may still be read, as long as the end is not
		// taken for the file's.
		if n, err := io.Copy(io.Discard, r); err == nil && n < 4<<20 {
			return fmt.Errorf("%d of 4 MiB are called the whole file", n)
		}
		return t.bounded("the writer", func() error {
			for block := make([]byte, 64<<10); err == nil; {
				if _, err = w.Write(block); err == nil {
					err = w.Close()
				}
			}
			return wantCode("writing on", err, driver.CodeGone)
		})
	})},
	{Name: "lifetime: a program is told that its sandbox is gone, and it is listed no more (M114)", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Lifetime = brief
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		p, err := t.background(s, t.cmd(Stubborn))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, spec.Lifetime+soon)
		defer cancel()
		exit, err := p.Wait(ctx)
		if err := wantCode("waiting for its program", err, driver.CodeGone); err != nil {
			return fmt.Errorf("%w (%+v)", err, exit)
		}
		if now := time.Now(); now.Before(s.Status().Created.Add(spec.Lifetime - 500*time.Millisecond)) {
			return errors.New("it ended before its time")
		}
		return t.vanishes(spec.Token)
	})},
}
