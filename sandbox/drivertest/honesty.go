package drivertest

import (
	"errors"
	"fmt"
	"net/netip"
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
	{Name: "check: a lifetime that is none is refused, as is a timeout (M55, M56)", Func: inside(func(t *trial, s driver.Sandbox) error {
		for _, d := range []time.Duration{0, -time.Second, time.Millisecond, 1500 * time.Millisecond, driver.MaxLifetime + time.Second} {
			spec := t.spec()
			spec.Lifetime = d
			_, err := t.b.Check(spec)
			if err := wantField(err, driver.CodeInvalid, "lifetime"); err != nil {
				return fmt.Errorf("%v: %w", d, err)
			}
		}
		for _, d := range []time.Duration{0, -time.Second} {
			cmd := t.cmd(Exit, "0")
			cmd.Timeout = d
			p, err := s.Start(t, cmd)
			if err == nil {
				return errors.Join(fmt.Errorf("with a timeout of %v it was started", d), p.Kill(t))
			}
			if err := wantField(err, driver.CodeInvalid, "timeout"); err != nil {
				return fmt.Errorf("%v: %w", d, err)
			}
		}
		return nil
	})},
	{Name: "check: a cap that is unset, or beyond all reason, is refused by name", Func: with(func(t *trial) error {
		for field, set := range map[string]func(*driver.Resources, int64){
			"resources.cpu_millis": func(r *driver.Resources, v int64) { r.CPUMillis = v },
			"resources.memory_mib": func(r *driver.Resources, v int64) { r.MemoryMiB = v },
			"resources.disk_mib":   func(r *driver.Resources, v int64) { r.DiskMiB = v },
			"resources.pids":       func(r *driver.Resources, v int64) { r.PIDs = v },
		} {
			for _, v := range []int64{0, -1, 1, 1 << 40} {
				spec := t.spec()
				set(&spec.Resources, v)
				at := field
				if v == 0 {
					at = "resources" // which was to be resolved
				}
				_, err := t.b.Check(spec)
				if err := wantField(err, driver.CodeInvalid, at); err != nil {
					return fmt.Errorf("%s = %d: %w", field, v, err)
				}
			}
		}
		return nil
	})},
	{Name: "check: it leaves the order alone, and answers the same again", Func: with(func(t *trial) error {
		order := func() driver.Spec {
			s := t.spec()
			s.Token, s.Facts.Instance, s.Labels = "dt-check", "dt-check", map[string]string{label: "x"}
			s.Env = map[string]string{"A": "b"}
			return s
		}
		spec := order()
		first, err := t.b.Check(spec)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(spec, order()) {
			return fmt.Errorf("it makes %+v of %+v", spec, order())
		}
		if second, err := t.b.Check(spec); err != nil || !reflect.DeepEqual(first, second) {
			return fmt.Errorf("it plans %+v, then %+v, %v", first, second, err)
		}
		return nil
	})},
	{Name: "check: every rule has its mechanism, in order", Capability: driver.CanEgressCIDR, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		var err error
		spec.Network.Egress, err = driver.Canonical([]driver.Rule{
			{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{443}},
			{Prefix: netip.MustParsePrefix("198.51.100.7/32"), Ports: []uint16{80, 8080}},
		})
		if err != nil {
			return err
		}
		plan, err := t.b.Check(spec)
		if err != nil {
			return err
		}
		if len(plan.Rules) != len(spec.Network.Egress) {
			return fmt.Errorf("%d rules are planned as %+v", len(spec.Network.Egress), plan.Rules)
		}
		for i, r := range spec.Network.Egress {
			if m := plan.Rules[i]; m.Name != r.String() || m.By == "" {
				return fmt.Errorf("%v is planned as %+v", r, m)
			}
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
