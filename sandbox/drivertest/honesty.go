package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var honesty = []Check{
	{Name: "info: it is well-formed and always the same", Func: with(func(t *trial) error {
		info := t.b.Info()
		if info.Name == "" || !reflect.DeepEqual(info, t.b.Info()) {
			return fmt.Errorf("%+v, then %+v", info, t.b.Info())
		}
		if !slices.IsSorted(info.Capabilities) || len(slices.Compact(slices.Clone(info.Capabilities))) != len(info.Capabilities) {
			return fmt.Errorf("capabilities are not sorted and unique: %q", info.Capabilities)
		}
		for _, c := range info.Capabilities {
			if !slices.Contains(driver.Capabilities(), c) {
				return fmt.Errorf("there is no capability %q", string(c))
			}
		}
		if _, err := driver.ParseIsolation(info.Isolation.String()); err != nil {
			return err
		}
		return nil
	})},
	{Name: "errors: each says where it comes from, with a code there is", Func: inside(func(t *trial, s driver.Sandbox) error {
		bad := t.spec()
		bad.Lifetime = 0
		_, check := t.b.Check(bad)
		made, create := t.b.Create(t, bad)
		if create == nil {
			t.keep(made)
		}
		cmd := t.cmd(Exit, "0")
		cmd.Timeout = 0
		_, start := s.Start(t, cmd)
		id := s.Status().ID
		all := map[string]error{"check": check, "create": create, "start": start}
		if t.b.Info().Can(driver.CanFiles) {
			_, all["stat"] = s.Files().Stat(t, "nothing")
		}
		if t.b.Info().Can(driver.CanAttach) {
			_, all["attach"] = t.b.Attach(t, "drivertest-no-such-id")
		}
		if err := s.Kill(t); err != nil {
			return err
		}
		_, all["start when gone"] = s.Start(t, t.cmd(Exit, "0"))
		for what, err := range all {
			if err == nil {
				return fmt.Errorf("%s: no error", what)
			}
			for _, p := range driver.Problems(err) {
				if !slices.Contains(driver.Codes(), p.Code) || p.Backend != t.b.Info().Name || p.Op == "" {
					return fmt.Errorf("%s: %#v", what, p)
				}
				if strings.HasPrefix(what, "st") && p.Sandbox != id {
					return fmt.Errorf("%s: of sandbox %q, not %q", what, p.Sandbox, id)
				}
			}
		}
		return nil
	})},
	{Name: "isolation: a list claims none, since it measures none", Capability: driver.CanList, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		found := false
		for st, err := range t.b.List(t, map[string]string{label: s.Status().Labels[label]}) {
			if err != nil {
				return err
			}
			if found = true; st.Isolation != driver.Unverified || st.Evidence != (driver.Evidence{}) {
				return fmt.Errorf("it is listed as %v with %+v", st.Isolation, st.Evidence)
			}
		}
		if !found {
			return errors.New("it is not listed")
		}
		return nil
	})},
	{Name: "isolation: what is measured is at least what was promised", Func: with(func(t *trial) error {
		spec := t.spec()
		plan, err := t.b.Check(spec)
		if err != nil {
			return err
		}
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		st := s.Status()
		if !st.Isolation.Satisfies(plan.Isolation) || !plan.Isolation.Satisfies(t.b.Info().Isolation) {
			return fmt.Errorf("measured %v, planned %v, declared %v", st.Isolation, plan.Isolation, t.b.Info().Isolation)
		}
		if e := st.Evidence; st.Isolation != driver.Unverified && (e.Source == "" || e.Detail == "" || e.Date.IsZero() || time.Until(e.Date) > time.Minute) {
			return fmt.Errorf("%v rests on %+v", st.Isolation, e)
		}
		return nil
	})},
	{Name: "isolation: code on the host's own kernel is called no more than a container", Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		if t.h.Kernel == nil {
			return skip("the harness has no Kernel")
		}
		host, err := t.h.Kernel(t)
		if err != nil {
			return err
		}
		out, err := t.run(s, t.cmd(Kernel))
		if err != nil {
			return err
		}
		shared := strings.TrimSpace(string(out.stdout)) == strings.TrimSpace(host)
		if tier := s.Status().Isolation; shared && tier > driver.Container {
			return fmt.Errorf("it runs on the host's kernel and is called %v", tier)
		}
		return nil
	})},
	{Name: "isolation: a floor is met, or refused", Func: with(func(t *trial) error {
		for _, floor := range []driver.Isolation{driver.Container, driver.UserKernel, driver.MicroVM} {
			spec := t.spec()
			spec.Isolation = floor
			s, err := t.b.Create(t, spec)
			if err != nil {
				if err := wantField(err, driver.CodeUnsupported, "isolation"); err != nil {
					return err
				}
				if _, err := t.b.Check(spec); wantField(err, driver.CodeUnsupported, "isolation") != nil && t.b.Info().Isolation.Satisfies(floor) {
					return fmt.Errorf("check lets the floor %v pass, which create refuses", floor)
				}
				continue
			}
			t.keep(s)
			if got := s.Status().Isolation; !got.Satisfies(floor) {
				return fmt.Errorf("with the floor %v it is %v", floor, got)
			}
			if err := t.onOwnKernel(s, floor); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "capabilities: optional methods exist exactly where they are declared", Func: inside(func(t *trial, s driver.Sandbox) error {
		_, extender := driver.As[driver.Extender](s)
		_, denier := driver.As[driver.Denier](s)
		_, scheduler := driver.As[driver.Scheduler](t.b)
		_, clock := driver.As[driver.Clock](t.b)
		info := t.b.Info()
		if extender != info.Can(driver.CanExtend) || denier != info.Can(driver.CanLearn) || scheduler != info.Can(driver.CanSchedule) || !clock && info.Can(driver.CanList) {
			return fmt.Errorf("implemented: Extender %v, Denier %v, Scheduler %v, Clock %v; declared: %q", extender, denier, scheduler, clock, info.Capabilities)
		}
		return nil
	})},
	{Name: "close: a closed backend refuses, and kills nothing", Capability: driver.CanAttach, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Detached = t.b.Info().Can(driver.CanDetach)
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		b, err := t.h.Open(t)
		if err != nil {
			return err
		}
		if err := errors.Join(b.Close(), b.Close()); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		if made, err := b.Create(t, t.spec()); err == nil {
			t.keep(made)
			return errors.New("a closed backend creates")
		}
		if _, err := b.Attach(t, s.Status().ID); err == nil {
			return errors.New("a closed backend attaches")
		}
		_, err = t.say(s, Exit, "0")
		return err
	})},
}

// onOwnKernel fails if a floor above container was accepted on the host's own
// kernel.
func (t *trial) onOwnKernel(s driver.Sandbox, floor driver.Isolation) error {
	if t.h.Kernel == nil || floor <= driver.Container {
		return nil
	}
	host, err := t.h.Kernel(t)
	if err != nil {
		return err
	}
	out, err := t.run(s, t.cmd(Kernel))
	if err == nil && strings.TrimSpace(string(out.stdout)) == strings.TrimSpace(host) {
		err = fmt.Errorf("the floor %v was accepted on the host's kernel", floor)
	}
	return err
}
