package mutant

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var honesty = []Mutant{
	{
		Name: "it declares what it lacks",
		Lie:  wrap(lie{info: func(i driver.Info) driver.Info { return also(i, driver.CanExpose) }}),
		Fails: []string{
			"expose: it can be used",
		},
	},
	{
		Name: "it does what it does not declare",
		Lie: wrap(lie{info: func(i driver.Info) driver.Info {
			i.Capabilities = []driver.Capability{driver.CanStrict}
			return i
		}}),
		Fails: []string{
			"detach, undeclared: an order for it is refused",
			"files, undeclared: every call is refused",
			"schedule, undeclared: the backend has no such method",
			"capabilities: optional methods exist exactly where they are declared",
			"egress.cidr, undeclared: an order for it is refused",
			"egress.host, undeclared: an order for it is refused",
			"egress.proxy, undeclared: an order for it is refused",
			"egress.learn, undeclared: an order for it is refused",
			"compat, undeclared: an order for it is refused",
			"list, undeclared: listing is refused",
			"attach, undeclared: it is refused",
			"extend, undeclared: an order for it is refused",
			"extend, undeclared: a sandbox has no such method",
		},
	},
	{
		Name: "it calls every sandbox a virtual machine",
		Lie: wrap(lie{
			check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
				s.Isolation = driver.Unverified
				p, err := b.Check(s)
				p.Isolation = driver.MicroVM
				return p, err
			},
			order: func(s driver.Spec) driver.Spec {
				s.Isolation = driver.Unverified
				return s
			},
			status: func(_ driver.Spec, st driver.Status) driver.Status {
				st.Isolation = driver.MicroVM
				st.Evidence = driver.Evidence{Source: "probe", Detail: "looks like one", Date: time.Now()}
				return st
			},
		}),
		Fails: []string{
			"isolation: code on the host's own kernel is called no more than a container",
			"isolation: a floor is met, or refused",
		},
	},
	{
		Name:  "it declares more isolation than it has",
		Lie:   wrap(lie{info: func(i driver.Info) driver.Info { i.Isolation = driver.MicroVM; return i }}),
		Fails: []string{"isolation: what is measured is at least what was promised"},
	},
	{
		Name: "it takes strict orders that it does not declare",
		Lie:  wrap(lie{info: func(i driver.Info) driver.Info { return without(i, driver.CanStrict) }}),
		Fails: []string{
			"strict, undeclared: an order for it is refused",
		},
	},
	{
		Name: "it calls deaths out of memory, though it cannot tell",
		Lie: wrap(lie{
			info: func(i driver.Info) driver.Info { return without(i, driver.CanReportOOM) },
			exit: func(e driver.Exit) driver.Exit {
				oom := e.Code != 0
				e.OOM = &oom
				return e
			},
		}),
		Fails: []string{
			"oom, undeclared: nothing false is said",
		},
	},
	{
		Name: "it lists its capabilities in any order",
		Lie: wrap(lie{info: func(i driver.Info) driver.Info {
			i.Capabilities = slices.Clone(i.Capabilities)
			slices.Reverse(i.Capabilities)
			return i
		}}),
		Fails: []string{
			"info: it is well-formed and always the same",
		},
	},
	{
		Name: "its plans leave out a cap",
		Lie: wrap(lie{check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
			p, err := b.Check(s)
			p.Caps = slices.DeleteFunc(p.Caps, func(m driver.Mechanism) bool { return m.Name == "pids" })
			return p, err
		}}),
		Fails: []string{
			"check: every cap has its mechanism, and so has the closed network",
		},
	},
	{
		Name: "its plans leave out a rule",
		Lie: wrap(lie{check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
			p, err := b.Check(s)
			p.Rules = p.Rules[:min(len(p.Rules), 1)]
			return p, err
		}}),
		Fails: []string{
			"check: every rule has its mechanism, in order",
		},
	},
	{
		Name: "its check needs the provider",
		Lie: fresh(func(drivertest.Harness) lie {
			var closed atomic.Bool
			return lie{
				check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
					if closed.Load() {
						return driver.Plan{}, &driver.Error{Code: driver.CodeUnavailable, Op: "check"}
					}
					return b.Check(s)
				},
				close: func(b driver.Backend) error {
					closed.Store(true)
					return b.Close()
				},
			}
		}),
		Fails: []string{
			"check: it answers without the provider",
		},
	},
	{
		Name: "its check adds to the order",
		Lie: wrap(lie{check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
			p, err := b.Check(s)
			if err == nil && s.Env != nil {
				s.Env["DEFAULTED"] = "1"
			}
			return p, err
		}}),
		Fails: []string{
			"check: it leaves the order alone, and answers the same again",
		},
	},
	{
		Name: "its errors do not say whose they are",
		Lie: wrap(lie{err: func(err error) error {
			if e, ok := errors.AsType[*driver.Error](err); ok && e.Code == driver.CodeGone {
				anonymous := *e
				anonymous.Backend, anonymous.Sandbox = "", ""
				return &anonymous
			}
			return err
		}}),
		Fails: []string{
			"errors: each says where it comes from, with a code there is",
		},
	},
}

// also declares one more capability.
func also(i driver.Info, c driver.Capability) driver.Info {
	i.Capabilities = slices.Sorted(slices.Values(append(slices.Clone(i.Capabilities), c)))
	return i
}

// without declares one less.
func without(i driver.Info, c driver.Capability) driver.Info {
	i.Capabilities = slices.DeleteFunc(slices.Clone(i.Capabilities), func(have driver.Capability) bool { return have == c })
	return i
}
