package drivertest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// alive fails unless the canary is, seen from where no policy applies. It is
// asked before and after, so that a proof that nothing is reached can fail.
func (t *trial) alive() error {
	if t.h.Canary.Addr == "" || t.h.Canary.Control == nil {
		return skip("the harness has no canary")
	}
	if err := t.h.Canary.Control(t); err != nil {
		return fmt.Errorf("the canary is dead, so nothing can be proved: %w", err)
	}
	return nil
}

// reaches fetches from an address; any result but an answer and a clean
// refusal is an error.
func (t *trial) reaches(s driver.Sandbox, addr string) (bool, error) {
	out, err := t.run(s, t.cmd(Fetch, addr))
	switch {
	case err != nil:
		return false, err
	case out.exit.Code == 0 && len(out.stdout) > 0:
		return true, nil
	case out.exit.Code == 7:
		return false, nil
	}
	return false, fmt.Errorf("fetch %s: %v", addr, out)
}

// wants fails unless addr is reached, or is not.
func (t *trial) wants(s driver.Sandbox, addr string, reached bool) error {
	got, err := t.reaches(s, addr)
	if err == nil && got != reached {
		err = fmt.Errorf("%s: reached %v, want %v", addr, got, reached)
	}
	return err
}

func (t *trial) createWith(rules ...driver.Rule) (driver.Sandbox, error) {
	spec := t.spec()
	var err error
	if spec.Network.Egress, err = driver.Canonical(rules); err != nil {
		return nil, err
	}
	return t.createFrom(spec)
}

// otherPort is the canary's address with a port that no rule names.
func otherPort(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(host, "1")
}

func port(addr string) []uint16 {
	_, text, _ := net.SplitHostPort(addr)
	n, _ := strconv.ParseUint(text, 10, 16)
	return []uint16{uint16(n)}
}

var network = []Check{
	{Name: "network: nothing is reached and no name resolves unless it is allowed", Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		if err := t.alive(); err != nil {
			return err
		}
		if err := t.wants(s, t.h.Canary.Addr, false); err != nil {
			return err
		}
		names := []string{"example.com"}
		if host, _, err := net.SplitHostPort(t.h.Canary.Host); err == nil {
			if err := t.wants(s, t.h.Canary.Host, false); err != nil {
				return err
			}
			names = append(names, host)
		}
		for _, name := range names {
			out, err := t.run(s, t.cmd(Resolve, name))
			if err != nil || out.exit.Code != 6 {
				return fmt.Errorf("resolving %s: %v, %v", name, out, err)
			}
		}
		return t.alive()
	})},
	{Name: "egress.cidr: a rule opens its range and ports, and nothing else", Capability: driver.CanEgressCIDR, Kind: Proof, Control: true, Func: with(func(t *trial) error {
		if err := t.alive(); err != nil {
			return err
		}
		ap, err := netip.ParseAddrPort(t.h.Canary.Addr)
		if err != nil {
			return err
		}
		only := netip.PrefixFrom(ap.Addr(), ap.Addr().BitLen())
		s, err := t.createWith(driver.Rule{Prefix: only, Ports: []uint16{ap.Port()}})
		if err != nil {
			return err
		}
		if err := errors.Join(t.wants(s, t.h.Canary.Addr, true), t.wants(s, otherPort(t.h.Canary.Addr), false)); err != nil {
			return err
		}
		for what, rule := range map[string]driver.Rule{
			"another port":  {Prefix: only, Ports: []uint16{ap.Port() ^ 1}},
			"another range": {Prefix: netip.PrefixFrom(ap.Addr().Next(), ap.Addr().BitLen()), Ports: []uint16{ap.Port()}},
		} {
			s, err := t.createWith(rule)
			if err != nil {
				return err
			}
			if err := t.wants(s, t.h.Canary.Addr, false); err != nil {
				return fmt.Errorf("a rule for %s: %w", what, err)
			}
		}
		return t.alive()
	})},
	{Name: "egress.host: a rule opens its host and ports, not the raw address", Capability: driver.CanEgressHost, Kind: Proof, Control: true, Func: with(func(t *trial) error {
		if err := t.alive(); err != nil {
			return err
		}
		host, _, err := net.SplitHostPort(t.h.Canary.Host)
		if err != nil {
			return skip("the canary has no host name")
		}
		s, err := t.createWith(driver.Rule{Host: host, Ports: port(t.h.Canary.Host)})
		if err != nil {
			return err
		}
		// The address first: before its name was asked for, nothing ties it
		// to the rule.
		if err := errors.Join(t.wants(s, t.h.Canary.Addr, false), t.wants(s, t.h.Canary.Host, true), t.wants(s, otherPort(t.h.Canary.Host), false)); err != nil {
			return err
		}
		for _, other := range []string{"other." + host, "*." + host, "evil" + host} {
			s, err := t.createWith(driver.Rule{Host: other, Ports: port(t.h.Canary.Host)})
			if err != nil {
				return err
			}
			if err := t.wants(s, t.h.Canary.Host, false); err != nil {
				return fmt.Errorf("a rule for %s: %w", other, err)
			}
		}
		return t.alive()
	})},
	{Name: "network: the host's own loopback is not the sandbox's", Control: true, Func: inside(func(t *trial, s driver.Sandbox) (err error) {
		at, alive, end, err := t.listener()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		// The proof can fail: from here it is reached.
		return errors.Join(alive(), t.wants(s, at.String(), false), alive())
	})},
	{Name: "egress.cidr: a rule opens nothing to the neighbour", Capability: driver.CanEgressCIDR, Kind: Proof, Control: true, Func: with(func(t *trial) error {
		if err := t.alive(); err != nil {
			return err
		}
		ap, err := netip.ParseAddrPort(t.h.Canary.Addr)
		if err != nil {
			return err
		}
		open, err := t.createWith(driver.Rule{Prefix: netip.PrefixFrom(ap.Addr(), ap.Addr().BitLen()), Ports: []uint16{ap.Port()}})
		if err != nil {
			return err
		}
		closed, err := t.create()
		if err != nil {
			return err
		}
		return errors.Join(t.wants(open, ap.String(), true), t.wants(closed, ap.String(), false), t.wants(open, ap.String(), true))
	})},
	refused(driver.CanEgressCIDR, "network.egress[0]", func(s *driver.Spec) {
		s.Network.Egress = []driver.Rule{{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{443}}}
	}),
	refused(driver.CanEgressHost, "network.egress[0]", func(s *driver.Spec) {
		s.Network.Egress = []driver.Rule{{Host: "example.com", Ports: []uint16{443}}}
	}),
	refused(driver.CanEgressProxy, "network.mode", func(s *driver.Spec) {
		s.Network = driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Host: "example.com", Ports: []uint16{443}}}}
	}),
	unprovable(driver.CanExpose), refused(driver.CanExpose, "network.expose", func(s *driver.Spec) { s.Network.Expose = []uint16{8080} }),
	refused(driver.CanLearn, "network.learn", func(s *driver.Spec) { s.Network.Learn = true }),
}

// refused is the check that an order for an undeclared capability is refused
// by Check and by Create, at field.
func refused(c driver.Capability, field string, ask func(*driver.Spec)) Check {
	return Check{Name: string(c) + ", undeclared: an order for it is refused", Capability: c, Kind: Refusal, Func: with(func(t *trial) error {
		spec := t.spec()
		ask(&spec)
		_, err := t.b.Check(spec)
		if err := wantField(err, driver.CodeUnsupported, field); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		s, err := t.b.Create(t, spec)
		if err == nil {
			t.keep(s)
			return errors.New("it was created")
		}
		if err := wantField(err, driver.CodeUnsupported, field); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		return t.vanishes(spec.Token)
	})}
}

// unprovable is the proof of a capability that the driver interface has no way
// to use yet: nobody can keep it, so nobody may declare it.
func unprovable(c driver.Capability) Check {
	return Check{Name: string(c) + ": it can be used", Capability: c, Kind: Proof, Func: with(func(t *trial) error {
		return fmt.Errorf("declared, but the driver interface has no way to use %q", string(c))
	})}
}
