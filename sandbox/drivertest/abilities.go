package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var abilities = []Check{
	{Name: "schedule: it sweeps what it covers and nothing else (M111)", Capability: driver.CanSchedule, Kind: Proof, Func: with(sweeps)},
	{Name: "schedule: a malformed one is refused by name", Capability: driver.CanSchedule, Kind: Proof, Func: with(func(t *trial) error {
		sched, ok := driver.As[driver.Scheduler](t.b)
		if !ok {
			return errors.New("it is no driver.Scheduler")
		}
		for what, s := range map[string]driver.Schedule{
			"no name":       {Interval: time.Minute},
			"no rhythm":     {Name: "drivertest-bad"},
			"two rhythms":   {Name: "drivertest-bad", Interval: time.Minute, Cron: "* * * * *"},
			"too often":     {Name: "drivertest-bad", Interval: time.Millisecond},
			"backwards":     {Name: "drivertest-bad", Interval: -time.Minute},
			"a wrong age":   {Name: "drivertest-bad", Interval: time.Minute, MaxAge: -1},
			"a broken cron": {Name: "drivertest-bad", Cron: "often"},
		} {
			_, err := sched.PutSchedule(t, s)
			if err == nil {
				return errors.Join(fmt.Errorf("%s: it was accepted", what), sched.DeleteSchedule(t, s.Name))
			}
			if err := wantCode(what, err, driver.CodeInvalid, driver.CodeUnsupported); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "schedule, undeclared: the backend has no such method", Capability: driver.CanSchedule, Kind: Refusal, Func: with(func(t *trial) error {
		if _, ok := driver.As[driver.Scheduler](t.b); ok {
			return errors.New("it is a driver.Scheduler")
		}
		return nil
	})},
	{Name: "multi-tenant: a sandbox so ordered keeps its tenant, and no other joins it (M121)", Capability: driver.CanMultiTenant, Kind: Proof, Control: true, Func: with(func(t *trial) error {
		ids := map[string]bool{}
		for _, tenant := range []string{"tenant-a", "tenant-b"} {
			spec := t.spec()
			spec.MultiTenant, spec.Facts.Tenant = true, tenant
			s, err := t.createFrom(spec)
			if err != nil {
				return err
			}
			if st := s.Status(); ids[st.ID] || st.Facts.Tenant != tenant {
				return fmt.Errorf("tenant %q has %+v", tenant, st)
			}
			if out, err := t.run(s, t.cmd(Copy, "/tmp/mark")); err != nil || out.exit.Code == 0 {
				return fmt.Errorf("another tenant's file is there: %v, %v", out, err)
			}
			if _, err := t.say(s, Write, "/tmp/mark"); err != nil {
				return err
			}
			ids[s.Status().ID] = true
		}
		return nil
	})},
	refused(driver.CanMultiTenant, "multi_tenant", func(s *driver.Spec) { s.MultiTenant = true }),
}

// sweeps puts a schedule over one of three sandboxes and waits for it.
func sweeps(t *trial) error {
	sched, ok := driver.As[driver.Scheduler](t.b)
	if !ok {
		return errors.New("it is no driver.Scheduler")
	}
	covered, dry, other := t.spec(), t.spec(), t.spec()
	schedules := map[string]driver.Schedule{
		covered.Token: {Name: covered.Token, Interval: time.Second, MaxAge: time.Second, Labels: map[string]string{"drivertest": covered.Token}},
		dry.Token:     {Name: dry.Token, Interval: time.Second, MaxAge: time.Second, DryRun: true},
	}
	dry.Facts.Reaper = dry.Token
	made := map[string]driver.Sandbox{}
	for _, spec := range []driver.Spec{covered, dry, other} {
		spec.Detached = t.b.Info().Can(driver.CanDetach)
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		made[spec.Token] = s
	}
	for name, s := range schedules {
		t.finally(func(ctx context.Context) error { return sched.DeleteSchedule(ctx, name) })
		st, err := sched.PutSchedule(t, s)
		if err != nil {
			return err
		}
		if !st.Running || st.Name != name || st.Interval != s.Interval {
			return fmt.Errorf("put, it is %+v", st)
		}
		if got, err := sched.Schedule(t, name); err != nil || got.Name != name || !got.Running || got.MaxAge != s.MaxAge {
			return fmt.Errorf("found, it is %+v, %v", got, err)
		}
	}
	if err := t.eventually(2*soon, "the sandbox it covers lives on", func() (bool, error) {
		_, err := t.say(made[covered.Token], Exit, "0")
		return errors.Is(err, driver.CodeGone), nil
	}); err != nil {
		return err
	}
	for what, spec := range map[string]driver.Spec{"a dry run's": dry, "no schedule's": other} {
		if _, err := t.say(made[spec.Token], Exit, "0"); err != nil {
			return fmt.Errorf("%s sandbox: %w", what, err)
		}
	}
	for range 2 {
		if err := sched.DeleteSchedule(t, covered.Token); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	_, err := sched.Schedule(t, covered.Token)
	return wantCode("finding what was deleted", err, driver.CodeNotFound)
}
