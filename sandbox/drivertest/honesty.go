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
	{Name: "check: every malformed part of an order is refused by name, all at once", Func: with(func(t *trial) error {
		bad := map[string]func(*driver.Spec){
			"lifetime":                 func(s *driver.Spec) { s.Lifetime = 0 },
			"image":                    func(s *driver.Spec) { s.Image = "Not An Image" },
			"resources.pids":           func(s *driver.Spec) { s.Resources.PIDs = -1 },
			"network.egress[0].host":   func(s *driver.Spec) { s.Network.Egress = []driver.Rule{{Host: "*", Ports: []uint16{443}}} },
			`env["HTTP_PROXY"]`:        func(s *driver.Spec) { s.Env = map[string]string{"HTTP_PROXY": "x"} },
			`labels["sandboxio.role"]`: func(s *driver.Spec) { s.Labels = map[string]string{"sandboxio.role": "keeper"} },
		}
		if !t.b.Info().Can(driver.CanEgressHost) {
			delete(bad, "network.egress[0].host") // refused for what it is, malformed or not
		}
		all := t.spec()
		for field, spoil := range bad {
			spec := t.spec()
			spoil(&spec)
			spoil(&all)
			_, err := t.b.Check(spec)
			if err := wantField(err, driver.CodeInvalid, field); err != nil {
				return fmt.Errorf("check: %w", err)
			}
			s, err := t.b.Create(t, spec)
			if err == nil {
				t.keep(s)
				return fmt.Errorf("create with a bad %s succeeds", field)
			}
			if err := wantField(err, driver.CodeInvalid, field); err != nil {
				return fmt.Errorf("create: %w", err)
			}
		}
		_, err := t.b.Check(all)
		for field := range bad {
			if err := wantField(err, driver.CodeInvalid, field); err != nil {
				return fmt.Errorf("all at once: %w", err)
			}
		}
		return nil
	})},
	{Name: "check: every cap has its mechanism, and so has the closed network", Func: with(func(t *trial) error {
		spec := t.spec()
		plan, err := t.b.Check(spec)
		if err != nil {
			return err
		}
		if plan.Network == "" || len(plan.Rules) != 0 {
			return fmt.Errorf("without rules the network is %q, rules %v", plan.Network, plan.Rules)
		}
		for _, want := range []string{"cpu", "memory", "disk", "pids", "lifetime"} {
			if !slices.ContainsFunc(plan.Caps, func(m driver.Mechanism) bool { return m.Name == want && m.By != "" }) {
				return fmt.Errorf("no mechanism for %s in %+v", want, plan.Caps)
			}
		}
		return nil
	})},
	{Name: "check: it answers without the provider", Func: with(func(t *trial) error {
		b, err := t.h.Open(t)
		if err != nil {
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
		// A closed backend reaches nobody, and Check needs nobody.
		spec := t.spec()
		want, err := t.b.Check(spec)
		if err != nil {
			return err
		}
		if got, err := b.Check(spec); err != nil || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("closed, it plans %+v, %v; open, %+v", got, err, want)
		}
		spec.Lifetime = 0
		_, err = b.Check(spec)
		return wantField(err, driver.CodeInvalid, "lifetime")
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
		_, scheduler := driver.As[driver.Scheduler](t.b)
		_, clock := driver.As[driver.Clock](t.b)
		info := t.b.Info()
		if extender != info.Can(driver.CanExtend) || scheduler != info.Can(driver.CanSchedule) || !clock && info.Can(driver.CanList) {
			return fmt.Errorf("implemented: Extender %v, Scheduler %v, Clock %v; declared: %q", extender, scheduler, clock, info.Capabilities)
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
