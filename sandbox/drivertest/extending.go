package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// extending asks how deadlines move.
var extending = []Check{
	{Name: "extend: a sandbox lives to its new deadline, and ends then", Capability: driver.CanExtend, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Lifetime = brief
		spec.MaxLifetime = time.Minute
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		e, ok := driver.As[driver.Extender](s)
		if !ok {
			return errors.New("the sandbox is no driver.Extender")
		}
		deadline := time.Now().Add(spec.Lifetime + soon)
		if err := e.Extend(t, deadline); err != nil {
			return err
		}
		if err := t.pause(spec.Lifetime + time.Second); err != nil {
			return err
		}
		if _, err := t.say(s, Exit, "0"); err != nil {
			return fmt.Errorf("after its first deadline: %w", err)
		}
		if t.b.Info().Can(driver.CanList) {
			for st, err := range t.b.List(t, map[string]string{driver.LabelInstance: spec.Token}) {
				if err != nil || st.Deadline.Sub(deadline).Abs() > 2*time.Second {
					return fmt.Errorf("its deadline is listed as %v, want %v, %v", st.Deadline, deadline, err)
				}
			}
		}
		return t.eventually(time.Until(deadline)+soon, "it lives on", func() (bool, error) {
			_, err := t.say(s, Exit, "0")
			return errors.Is(err, driver.CodeGone), nil
		})
	})},
	{Name: "extend: a deadline that is past, or beyond what may be, is refused", Capability: driver.CanExtend, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.MaxLifetime = spec.Lifetime + time.Hour
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		e, ok := driver.As[driver.Extender](s)
		if !ok {
			return errors.New("the sandbox is no driver.Extender")
		}
		for _, d := range []time.Time{{}, time.Now().Add(-time.Minute), time.Now().Add(spec.MaxLifetime + time.Minute)} {
			if err := wantCode(fmt.Sprintf("extend to %v", d), e.Extend(t, d), driver.CodeInvalid); err != nil {
				return err
			}
		}
		_, err = t.say(s, Exit, "0")
		return err
	})},
	{Name: "extend: nothing lives longer than was allowed at its creation", Capability: driver.CanExtend, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		e, ok := driver.As[driver.Extender](s)
		if !ok {
			return errors.New("the sandbox is no driver.Extender")
		}
		return wantCode("extending what was made without MaxLifetime", e.Extend(t, s.Status().Deadline.Add(time.Minute)), driver.CodeInvalid)
	})},
	refused(driver.CanExtend, "max_lifetime", func(s *driver.Spec) { s.MaxLifetime = s.Lifetime + time.Minute }),
	{Name: "extend, undeclared: a sandbox has no such method", Capability: driver.CanExtend, Kind: Refusal, Func: inside(func(t *trial, s driver.Sandbox) error {
		if _, ok := driver.As[driver.Extender](s); ok {
			return errors.New("it is a driver.Extender")
		}
		return nil
	})},
	{Name: "extend: who joined moves the same deadline (M173)", Capability: driver.CanExtend, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Lifetime, spec.MaxLifetime = brief, time.Minute
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		if !t.b.Info().Can(driver.CanAttach) {
			return extend(t, s, time.Now().Add(30*time.Second))
		}
		return t.second(func(b driver.Backend) error {
			joined, err := b.Attach(t, s.Status().ID)
			if err != nil {
				return err
			}
			to := time.Now().Add(30 * time.Second)
			if err := extend(t, joined, to); err != nil {
				return err
			}
			if d := joined.Status().Deadline; d.Sub(to).Abs() > 2*time.Second {
				return fmt.Errorf("its status says %v, want %v", d, to)
			}
			if err := t.pause(time.Until(s.Status().Created.Add(spec.Lifetime + time.Second))); err != nil {
				return err
			}
			_, err = t.say(s, Exit, "0")
			return err
		})
	})},
	{Name: "extend: a deadline can be brought nearer", Capability: driver.CanExtend, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.MaxLifetime = spec.Lifetime
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		if err := extend(t, s, time.Now().Add(2*time.Second)); err != nil {
			return err
		}
		return t.eventually(2*time.Second+soon, "it lives on", func() (bool, error) {
			_, err := t.say(s, Exit, "0")
			return errors.Is(err, driver.CodeGone), nil
		})
	})},
	{Name: "extend: for a caller who has left, nothing moves, and he is told plainly", Capability: driver.CanExtend, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.MaxLifetime = time.Hour
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		before := s.Status().Deadline
		if err := plain("extend", extend(left(t), s, time.Now().Add(30*time.Minute)), context.Canceled); err != nil {
			return err
		}
		if after := s.Status().Deadline; !after.Equal(before) {
			return fmt.Errorf("its deadline was %v and is %v", before, after)
		}
		return nil
	})},
}

// extend asks a sandbox that is said to be able to.
func extend(ctx context.Context, s driver.Sandbox, to time.Time) error {
	e, ok := driver.As[driver.Extender](s)
	if !ok {
		return errors.New("the sandbox is no driver.Extender")
	}
	return e.Extend(ctx, to)
}
