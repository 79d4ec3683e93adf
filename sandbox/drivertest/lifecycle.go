package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var lifecycle = []Check{
	{Name: "create: the sandbox is what was ordered", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Facts.Tenant, spec.Facts.Session, spec.Facts.Template = "tenant-1", "session-1", "sha256:0"
		before := time.Now()
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		st := s.Status()
		switch {
		case st.ID == "":
			return errors.New("it has no id")
		case st.Backend != t.b.Info().Name:
			return fmt.Errorf("its backend is %q, not %q", st.Backend, t.b.Info().Name)
		case st.State != driver.StateRunning:
			return fmt.Errorf("its state is %q", st.State)
		case st.Facts != spec.Facts:
			return fmt.Errorf("its facts are %+v, not %+v", st.Facts, spec.Facts)
		case !maps.Equal(st.Labels, spec.Labels):
			return fmt.Errorf("its labels are %v, not %v", st.Labels, spec.Labels)
		case st.Detached:
			return errors.New("it is detached")
		}
		if end := st.Deadline.Sub(before); end < spec.Lifetime-30*time.Second || end > spec.Lifetime+30*time.Second {
			return fmt.Errorf("its deadline is %v from now, not %v", end, spec.Lifetime)
		}
		return nil
	})},
	{Name: "create: a cancelled create leaves nothing and says so plainly (M176)", Func: with(func(t *trial) error {
		for _, after := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t, after)
			if after == 0 {
				cancel()
			}
			spec := t.spec()
			s, err := t.b.Create(ctx, spec)
			cancel()
			if err == nil {
				t.keep(s)
				if after == 0 {
					return errors.New("a sandbox was made for a caller who had left")
				}
				continue
			}
			if !errors.Is(err, ctx.Err()) || driver.CodeOf(err) != "" {
				return fmt.Errorf("cancelled after %v: %v (code %q), want the context's own error", after, err, driver.CodeOf(err))
			}
			if err := t.vanishes(spec.Token); err != nil {
				return fmt.Errorf("cancelled after %v: %w", after, err)
			}
		}
		return nil
	})},
	{Name: "create: an image that does not exist is an error that leaves nothing (M119)", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Image = "registry.invalid/no-such@sha256:0000000000000000000000000000000000000000000000000000000000000000"
		s, err := t.b.Create(t, spec)
		if err == nil {
			t.keep(s)
			return errors.New("it was created")
		}
		if err := wantCode("create", err, driver.CodeNotFound, driver.CodeInvalid, driver.CodeUnavailable, driver.CodeUnsupported); err != nil {
			return err
		}
		return t.vanishes(spec.Token)
	})},
	{Name: "kill: the sandbox is gone when kill returns, and every handle says so", Func: with(func(t *trial) error {
		spec := t.spec()
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		p, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		if err := s.Kill(t); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		if err := t.gone(s); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		_, err = p.Wait(ctx)
		if err := wantCode("waiting for a program whose sandbox was killed", err, driver.CodeGone); err != nil {
			return err
		}
		if t.b.Info().Can(driver.CanList) {
			if there, err := t.listed(t.b, spec.Token); err != nil || there {
				return fmt.Errorf("still listed: %v, %v", there, err)
			}
		}
		return nil
	})},
	{Name: "kill: killing what is gone succeeds (M115)", Func: with(func(t *trial) error {
		s, err := t.create()
		if err != nil {
			return err
		}
		for range 3 {
			if err := s.Kill(t); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "create, kill: what is done at once is done for each", Func: with(func(t *trial) error {
		const n = 4
		made, errs := make(chan driver.Sandbox, n), make(chan error, 3*n)
		for range n {
			go func() {
				s, err := t.create()
				errs <- err
				made <- s
			}()
		}
		ids, all := map[string]bool{}, []driver.Sandbox{}
		var err error
		for range n {
			err = errors.Join(err, <-errs)
			if s := <-made; s != nil {
				ids[s.Status().ID] = true
				all = append(all, s)
			}
		}
		if err != nil || len(ids) != n {
			return fmt.Errorf("%d creates at once give %d sandboxes: %v", n, len(ids), err)
		}
		for _, s := range all {
			for range 2 { // two who kill the same one
				go func() { errs <- s.Kill(t) }()
			}
		}
		for range 2 * n {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		for _, s := range all {
			err = errors.Join(err, t.gone(s))
		}
		return err
	})},
	{Name: "kill: a neighbour goes on", Func: with(func(t *trial) error {
		one, err := t.create()
		if err != nil {
			return err
		}
		two, err := t.create()
		if err != nil {
			return err
		}
		p, err := t.background(two, t.cmd(Hang))
		if err != nil {
			return err
		}
		if err := one.Kill(t); err != nil {
			return err
		}
		if err := t.running(p); err != nil {
			return fmt.Errorf("the neighbour's program: %w", err)
		}
		_, err = t.say(two, Exit, "0")
		return err
	})},
	{Name: "lifetime: a sandbox ends by itself, not before its time (M120)", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Lifetime = brief
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		if _, err := t.say(s, Exit, "0"); err != nil {
			return fmt.Errorf("before its time: %w", err)
		}
		return t.eventually(spec.Lifetime+soon, "it lives on", func() (bool, error) {
			_, err := t.say(s, Exit, "0")
			return errors.Is(err, driver.CodeGone), nil
		})
	})},
}

// last is asked when everything else has been.
var last = []Check{
	{Name: "last: nothing is left", Func: func(ctx context.Context, b driver.Backend, h Harness) error {
		if h.Leftovers == nil {
			return skip("the harness has no Leftovers")
		}
		// A sandbox made and killed just now is looked for too.
		if err := with(func(t *trial) error { _, err := t.create(); return err })(ctx, b, h); err != nil {
			return err
		}
		t := &trial{Context: ctx}
		var left []string
		err := t.eventually(soon, "something is left", func() (bool, error) {
			var err error
			left, err = h.Leftovers(ctx)
			return len(left) == 0, err
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, lines(left))
		}
		return nil
	}},
}
