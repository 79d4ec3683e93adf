package drivertest

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// plans asks what Check makes of an order.
var plans = []Check{
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
}
