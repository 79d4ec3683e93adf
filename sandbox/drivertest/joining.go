package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// joining asks what those who come later find, and what goes on without
// anybody.
var joining = []Check{
	{Name: "detach: a detached program in an owned sandbox is refused by name", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Write, "/tmp/ran")
		cmd.Detached = true
		p, err := s.Start(t, cmd)
		if err == nil {
			return errors.Join(errors.New("it was started"), p.Kill(t))
		}
		if err := wantField(err, driver.CodeUnsupported, "detached"); err != nil {
			return err
		}
		if out, err := t.run(s, t.cmd(Copy, "/tmp/ran")); err != nil || out.exit.Code == 0 {
			return fmt.Errorf("it ran: %v, %v", out, err)
		}
		return nil
	})},
	{Name: "detach: a detached program has a timeout of its own (M74)", Capability: driver.CanDetach, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Detached = true
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		for file, timeout := range map[string]time.Duration{"/tmp/short": brief, "/tmp/long": time.Minute} {
			cmd := t.cmd(Beat, file)
			cmd.Detached, cmd.Timeout = true, timeout
			if _, err := s.Start(t, cmd); err != nil {
				return err
			}
		}
		if err := errors.Join(t.beats(s, "/tmp/short"), t.pause(brief), t.stops(s, "/tmp/short")); err != nil {
			return err
		}
		return t.beats(s, "/tmp/long")
	})},
	{Name: "detach: a detached sandbox ends at its deadline, though nobody owns it", Capability: driver.CanDetach, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Detached, spec.Lifetime = true, brief
		var id string
		err := t.second(func(b driver.Backend) error {
			s, err := b.Create(t, spec)
			if err == nil {
				id = s.Status().ID
				t.keep(s)
			}
			return err
		})
		if err != nil {
			return err
		}
		return t.eventually(spec.Lifetime+soon, "it lives on", func() (bool, error) {
			_, err := t.b.Attach(t, id)
			if err == nil {
				return false, nil
			}
			return true, wantCode("attach", err, driver.CodeGone, driver.CodeNotFound)
		})
	})},
	{Name: "attach: several who joined at once get each their own answers", Capability: driver.CanAttach, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		const n, rounds = 3, 5
		errs := make(chan error, n+1)
		talk := func(s driver.Sandbox, word string) {
			var err error
			for i := 0; i < rounds && err == nil; i++ {
				var got string
				if got, err = t.say(s, Args, word); err == nil && got != word+"\x00" {
					err = fmt.Errorf("%s hears %q", word, got)
				}
			}
			errs <- err
		}
		for i := range n {
			joined, err := t.b.Attach(t, s.Status().ID)
			if err != nil {
				return err
			}
			go talk(joined, fmt.Sprintf("joined-%d", i))
		}
		go talk(s, "maker")
		var err error
		for range n + 1 {
			err = errors.Join(err, <-errs)
		}
		return err
	})},
	{Name: "attach: who joined and leaves ends nothing of the others'", Capability: driver.CanAttach, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		if err := t.second(func(b driver.Backend) error {
			joined, err := b.Attach(t, s.Status().ID)
			if err == nil {
				_, err = t.say(joined, Exit, "0")
			}
			return err
		}); err != nil {
			return err
		}
		if err := t.running(p); err != nil {
			return err
		}
		_, err = t.say(s, Exit, "0")
		return err
	})},
}
