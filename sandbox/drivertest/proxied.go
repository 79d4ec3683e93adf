package drivertest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// near gives the address of a place that the owner's process reaches, and
// whether it is alive; close ends it.
func (t *trial) near() (at netip.AddrPort, alive func() error, end func() error, err error) {
	if t.h.Near.Addr != "" {
		at, err = netip.ParseAddrPort(t.h.Near.Addr)
		return at, func() error { return t.h.Near.Control(t) }, func() error { return nil }, err
	}
	if t.b.Info().Simulated {
		return at, nil, nil, skip("the harness has no place near the owner, and nothing real would reach one")
	}
	return t.listener()
}

// listener serves on the loopback of this machine, as near does.
func (t *trial) listener() (at netip.AddrPort, alive func() error, end func() error, err error) {
	l, err := (&net.ListenConfig{}).Listen(t, "tcp", "127.0.0.1:0")
	if err != nil {
		return at, nil, nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, werr := c.Write([]byte("alive\n"))
			_ = errors.Join(werr, c.Close())
		}
	}()
	alive = func() error {
		c, err := (&net.Dialer{}).DialContext(t, "tcp", l.Addr().String())
		if err != nil {
			return fmt.Errorf("the listener is dead, so nothing can be proved: %w", err)
		}
		return c.Close()
	}
	at, err = netip.ParseAddrPort(l.Addr().String())
	return at, alive, func() error { err := l.Close(); <-served; return err }, err
}

// proxied makes a sandbox in mode proxy.
func (t *trial) proxied(learn bool, rules ...driver.Rule) (driver.Sandbox, error) {
	spec := t.spec()
	var err error
	spec.Network = driver.Network{Mode: driver.Proxy, Learn: learn}
	if spec.Network.Egress, err = driver.Canonical(rules); err != nil {
		return nil, err
	}
	return t.createFrom(spec)
}

// through fails unless addr is reached through the proxy, or is not.
func (t *trial) through(s driver.Sandbox, addr string, reached bool) error {
	out, err := t.run(s, t.cmd(Proxied, addr))
	switch got := out.exit.Code == 0 && len(out.stdout) > 0; {
	case err != nil:
		return err
	case !got && out.exit.Code != 7 && out.exit.Code != 0: // it could not even try
		return fmt.Errorf("proxied %s: %v", addr, out)
	case got != reached:
		return fmt.Errorf("%s through the proxy: reached %v, want %v: %v", addr, got, reached, out)
	}
	return nil
}

func only(at netip.AddrPort) driver.Rule {
	return driver.Rule{Prefix: netip.PrefixFrom(at.Addr(), at.Addr().BitLen()), Ports: []uint16{at.Port()}}
}

var proxies = []Check{
	{Name: "egress.proxy: a rule opens its range and ports, to who uses the proxy", Capability: driver.CanEgressProxy, Kind: Proof, Control: true, Func: with(func(t *trial) (err error) {
		at, alive, end, err := t.near()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		if err := alive(); err != nil {
			return err
		}
		s, err := t.proxied(false, only(at))
		if err != nil {
			return err
		}
		if err := errors.Join(t.through(s, at.String(), true), t.through(s, otherPort(at.String()), false), t.wants(s, at.String(), false)); err != nil {
			return err
		}
		for what, rule := range map[string]driver.Rule{
			"another port":  {Prefix: only(at).Prefix, Ports: []uint16{at.Port() ^ 1}},
			"another range": {Prefix: netip.PrefixFrom(at.Addr().Next(), at.Addr().BitLen()), Ports: []uint16{at.Port()}},
			"a host":        {Host: "example.com", Ports: []uint16{at.Port()}},
		} {
			s, err := t.proxied(false, rule)
			if err != nil {
				return err
			}
			if err := t.through(s, at.String(), false); err != nil {
				return fmt.Errorf("a rule for %s: %w", what, err)
			}
		}
		return alive()
	})},
	{Name: "egress.proxy: without rules there is no proxy, whatever the mode", Capability: driver.CanEgressProxy, Kind: Proof, Control: true, Func: with(func(t *trial) (err error) {
		at, alive, end, err := t.near()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		s, err := t.proxied(false)
		if err != nil {
			return err
		}
		return errors.Join(alive(), t.through(s, at.String(), false), t.wants(s, at.String(), false), alive())
	})},
	{Name: "egress.proxy: a sandbox without an owner is refused", Capability: driver.CanEgressProxy, Kind: Proof, Func: with(func(t *trial) error {
		if !t.b.Info().Can(driver.CanDetach) {
			return nil // refused, and for that
		}
		spec := t.spec()
		spec.Detached = true
		spec.Network = driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Host: "example.com", Ports: []uint16{443}}}}
		_, err := t.b.Check(spec)
		return wantField(err, driver.CodeUnsupported, "network.mode")
	})},
	{Name: "egress.learn: what rules refuse is told", Capability: driver.CanLearn, Kind: Proof, Func: with(func(t *trial) error {
		return t.tells(false, driver.Rule{Host: "example.com", Ports: []uint16{443}})
	})},
	{Name: "egress.learn: what was tried is told, and refused all the same", Capability: driver.CanLearn, Kind: Proof, Func: with(func(t *trial) error {
		return t.tells(true)
	})},
}

// tells fails unless a sandbox tells what it was refused, also after its end.
func (t *trial) tells(learn bool, rules ...driver.Rule) error {
	if !t.b.Info().Can(driver.CanEgressProxy) {
		return skip("attempts are made through a proxy, which the backend does not declare")
	}
	s, err := t.proxied(learn, rules...)
	if err != nil {
		return err
	}
	tell, ok := driver.As[driver.Denier](s)
	if !ok {
		return errors.New("the sandbox is no driver.Denier")
	}
	const addr = "203.0.113.9:8443"
	if d, err := tell.Denied(t); err != nil || len(d.Told) > 0 || d.Other > 0 {
		return fmt.Errorf("before anything was tried: %+v, %w", d, err)
	}
	if err := errors.Join(t.through(s, addr, false), t.through(s, addr, false)); err != nil {
		return err
	}
	check := func() error {
		d, err := tell.Denied(t)
		if err != nil {
			return err
		}
		if len(d.Told) != 1 || d.Other != 0 || d.Told[0].Addr.String() != "203.0.113.9" || d.Told[0].Port != 8443 || d.Told[0].Count != 2 || d.Told[0].Reason == "" {
			return fmt.Errorf("two attempts at %s are told as %+v", addr, d)
		}
		return nil
	}
	return errors.Join(check(), s.Kill(t), check())
}
