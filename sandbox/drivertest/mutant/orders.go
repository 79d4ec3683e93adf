package mutant

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var orders = []Mutant{
	{
		Name: "it ignores the network policy",
		Lie: func(b driver.Backend, h drivertest.Harness) driver.Backend {
			return backend{b, lie{order: func(s driver.Spec) driver.Spec {
				if s.Network.Mode == driver.Transparent { // the proxy has a lie of its own
					s.Network.Egress = everywhere(h.Canary)
				}
				return s
			}}}
		},
		Fails: []string{
			"network: nothing is reached and no name resolves unless it is allowed",
			"egress.cidr: a rule opens its range and ports, and nothing else",
			"egress.host: a rule opens its host and ports, not the raw address",
			"egress.cidr: a rule opens nothing to the neighbour",
		},
	},
	{
		Name: "it ignores the caps",
		Lie: wrap(lie{order: func(s driver.Spec) driver.Spec {
			s.Resources = driver.Resources{CPUMillis: 2000, MemoryMiB: 2048, DiskMiB: 1024, PIDs: 4096}
			return s
		}}),
		Fails: []string{
			"caps: no more processes than allowed",
			"caps: no more memory than allowed",
			"caps: no more disk than allowed, wherever it is writable",
			"caps: no more CPU than allowed",
			"oom: a program that the memory cap ended is told from others (M67)",
			"caps: a program that runs out of memory falls alone",
			"caps: no more disk than allowed, written from outside (M83)",
			"caps: no more disk than allowed, unpacked from an archive",
		},
	},
	{
		Name: "it takes strict for compat",
		Lie:  wrap(lie{order: func(s driver.Spec) driver.Spec { s.Profile = driver.Compat; return s }}),
		Fails: []string{
			"strict: the root cannot be written, /work, /tmp and /run can",
			"files: from outside, no more may be written than by a program",
		},
	},
	{
		Name: "it shares the host's network",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
				if args, ok := says(h, c, drivertest.Fetch); ok && len(args) == 1 && strings.HasPrefix(args[0], "127.0.0.1:") {
					c.Args = h.Programs.Argv(drivertest.Both, "alive", "") // as the host's listener would say
				}
				return c
			}}
		}),
		Fails: []string{
			"network: the host's own loopback is not the sandbox's",
		},
	},
	{
		Name: "its programs are root",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
				if _, ok := says(h, c, drivertest.Status); ok {
					c.Args = h.Programs.Argv(drivertest.Both, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNoNewPrivs:\t0\nSeccomp:\t0\nCapEff:\t000001ffffffffff\n", "")
				}
				return c
			}}
		}),
		Fails: []string{
			"privileges: a program has none",
		},
	},
	{
		Name: "it declares compat, and refuses it",
		Lie: wrap(lie{create: func(ctx context.Context, b driver.Backend, s driver.Spec) (driver.Sandbox, error) {
			if s.Profile == driver.Compat {
				return nil, &driver.Error{Code: driver.CodeUnsupported, Field: "profile", Hint: "use strict"}
			}
			return b.Create(ctx, s)
		}}),
		Fails: []string{
			"compat: a sandbox with a writable root can be had",
		},
	},
	{
		Name: "it calls every exit of 137 out of memory",
		Lie: wrap(lie{exit: func(e driver.Exit) driver.Exit {
			oom := e.Code == 137
			e.OOM = &oom
			return e
		}}),
		Fails: []string{
			"oom: a program that the memory cap ended is told from others (M67)",
		},
	},
	{
		Name: "it mends malformed orders",
		Lie: wrap(lie{
			check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) { return b.Check(mended(s)) },
			create: func(ctx context.Context, b driver.Backend, s driver.Spec) (driver.Sandbox, error) {
				return b.Create(ctx, mended(s))
			},
		}),
		Fails: []string{
			"env: what cannot arrive unchanged is refused by name, for sandbox and command",
			"labels: reserved ones, and what cannot be carried, are refused by name (M106)",
			"check: every malformed part of an order is refused by name, all at once",
			"check: it answers without the provider",
			"check: a lifetime that is none is refused, as is a timeout (M55, M56)",
			"check: a cap that is unset, or beyond all reason, is refused by name",
			"errors: each says where it comes from, with a code there is",
		},
	},
	{
		Name: "it drops what it cannot do",
		Lie: wrap(lie{
			check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) { return b.Check(modest(s)) },
			create: func(ctx context.Context, b driver.Backend, s driver.Spec) (driver.Sandbox, error) {
				return b.Create(ctx, modest(s))
			},
		}),
		Fails: []string{
			"expose, undeclared: an order for it is refused",
			"multi-tenant, undeclared: an order for it is refused",
		},
	},
	{
		Name: "it declares that it tells tenants apart, and forgets whose a sandbox is",
		Lie: wrap(lie{
			info: func(i driver.Info) driver.Info { return also(i, driver.CanMultiTenant) },
			check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
				s.MultiTenant = false
				return b.Check(s)
			},
			create: func(ctx context.Context, b driver.Backend, s driver.Spec) (driver.Sandbox, error) {
				if s.MultiTenant {
					s.MultiTenant, s.Facts.Tenant = false, ""
				}
				return b.Create(ctx, s)
			},
		}),
		Fails: []string{
			"multi-tenant: a sandbox so ordered keeps its tenant, and no other joins it (M121)",
		},
	},
}

// everywhere are rules that let everything through that the suite tries.
func everywhere(canary drivertest.Canary) []driver.Rule {
	ap, err := netip.ParseAddrPort(canary.Addr)
	if err != nil {
		return nil
	}
	rules := []driver.Rule{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Ports: []uint16{1, ap.Port()}},
		{Prefix: netip.MustParsePrefix("::/0"), Ports: []uint16{1, ap.Port()}},
	}
	if host, _, err := net.SplitHostPort(canary.Host); err == nil {
		rules = append(rules, driver.Rule{Host: host, Ports: []uint16{ap.Port()}})
	}
	rules, err = driver.Canonical(rules)
	if err != nil {
		return nil
	}
	return rules
}

// mended is an order without what is wrong with it.
func mended(s driver.Spec) driver.Spec {
	if s.Lifetime < time.Second || s.Lifetime > driver.MaxLifetime || s.Lifetime%time.Second != 0 {
		s.Lifetime = driver.DefaultLifetime
	}
	if full, err := s.Resources.Resolve(); err == nil {
		s.Resources = full
	} else {
		s.Resources, _ = driver.Resources{}.Resolve()
	}
	s.Env, s.Labels = maps.Clone(s.Env), maps.Clone(s.Labels)
	maps.DeleteFunc(s.Env, func(k, v string) bool { return driver.ValidateEnv("", map[string]string{k: v}) != nil })
	maps.DeleteFunc(s.Labels, func(k, v string) bool { return driver.ValidateLabels("", map[string]string{k: v}) != nil })
	return s
}

// modest is an order without what not every backend can do.
func modest(s driver.Spec) driver.Spec {
	s.MultiTenant, s.Network.Expose = false, nil
	return s
}
