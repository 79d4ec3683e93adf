package mutant

import (
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var proxies = []Mutant{
	{
		Name: "its proxy lets everybody through",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
				if _, ok := says(h, c, drivertest.Proxied); ok {
					c.Args = h.Programs.Argv(drivertest.Both, "alive", "")
				}
				return c
			}}
		}),
		Fails: []string{
			"egress.proxy: a rule opens its range and ports, to who uses the proxy",
			"egress.proxy: without rules there is no proxy, whatever the mode",
			"egress.learn: what rules refuse is told",
			"egress.learn: what was tried is told, and refused all the same",
		},
	},
	{
		Name: "it drops every rule",
		Lie:  wrap(lie{order: func(s driver.Spec) driver.Spec { s.Network.Egress = nil; return s }}),
		Fails: []string{
			"egress.cidr: a rule opens its range and ports, and nothing else",
			"egress.cidr: a rule opens nothing to the neighbour",
			"egress.host: a rule opens its host and ports, not the raw address",
			"egress.proxy: a rule opens its range and ports, to who uses the proxy",
			"egress.learn: what rules refuse is told",
		},
	},
	{
		Name: "it promises a proxy where there is no owner to run it",
		Lie: wrap(lie{check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
			if s.Network.Mode == driver.Proxy {
				s.Detached = false
			}
			return b.Check(s)
		}}),
		Fails: []string{
			"egress.proxy: a sandbox without an owner is refused",
		},
	},
	{
		Name: "it forgets what it refused",
		Lie:  wrap(lie{denied: func(driver.Denials) driver.Denials { return driver.Denials{} }}),
		Fails: []string{
			"egress.learn: what rules refuse is told",
			"egress.learn: what was tried is told, and refused all the same",
		},
	},
	{
		Name: "what it lets through is told as refused",
		Lie: wrap(lie{denied: func(d driver.Denials) driver.Denials {
			d.Other++
			return d
		}}),
		Fails: []string{
			"egress.learn: what rules refuse is told",
			"egress.learn: what was tried is told, and refused all the same",
		},
	},
}
