package mutant

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var variables = []Mutant{
	{
		Name: "the image's variables win over the sandbox's",
		Lie: wrap(lie{order: func(s driver.Spec) driver.Spec {
			s.Env = maps.Clone(s.Env)
			delete(s.Env, "PATH")
			return s
		}}),
		Fails: []string{
			"env: a name that the image has too is there once, with the sandbox's value (M99)",
		},
	},
	{
		Name: "the sandbox's variables win over secrets",
		Lie: wrap(lie{cmd: func(s driver.Spec, c driver.Cmd) driver.Cmd {
			c.Secrets = maps.Clone(c.Secrets)
			maps.DeleteFunc(c.Secrets, func(k string, _ driver.Secret) bool { _, ok := s.Env[k]; return ok })
			return c
		}}),
		Fails: []string{
			"secrets: one wins over a plain variable of its name (M106)",
		},
	},
	{
		Name: "it passes the host's own variables on",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			c.Env = maps.Clone(c.Env)
			for _, kv := range os.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				if strings.HasPrefix(k, "DRIVERTEST_") { // the suite's own will do
					if c.Env == nil {
						c.Env = map[string]string{}
					}
					c.Env[k] = v
				}
			}
			return c
		}}),
		Fails: []string{
			"env: nothing of the host's own is inside",
		},
	},
	{
		Name: "it reads a secret to the end of its line",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			c.Secrets = maps.Clone(c.Secrets)
			for k, v := range c.Secrets {
				line, _, _ := strings.Cut(v.Reveal(), "\n")
				c.Secrets[k] = driver.NewSecret(line)
			}
			return c
		}}),
		Fails: []string{
			"secrets: they arrive",
		},
	},
	{
		Name: "it keeps secrets for the next command",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			kept := map[string]map[string]driver.Secret{}
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				mu.Lock()
				defer mu.Unlock()
				id, given := s.Status().ID, cmd.Secrets
				if given == nil {
					cmd.Secrets = kept[id]
				}
				p, err := s.Start(ctx, cmd)
				if err == nil && given != nil {
					kept[id] = given
				}
				return p, err
			}}
		}),
		Fails: []string{
			"secrets: they reach that command only",
		},
	},
	{
		Name: "it hands secrets over on the command line",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
				if _, ok := says(h, c, drivertest.Stubborn); ok {
					c.Args = slices.Clone(c.Args)
					for k, v := range c.Secrets {
						c.Args = append(c.Args, k+"="+v.Reveal())
					}
				}
				return c
			}}
		}),
		Fails: []string{
			"secrets: they are on no command line inside",
		},
	},
	{
		Name: "its plans repeat the variables",
		Lie: wrap(lie{check: func(b driver.Backend, s driver.Spec) (driver.Plan, error) {
			p, err := b.Check(s)
			for k, v := range s.Env {
				p.Warnings = append(p.Warnings, "it is given "+k+"="+v)
			}
			slices.Sort(p.Warnings)
			return p, err
		}}),
		Fails: []string{
			"records: no secret, output, argument or variable is in them, nor in an error",
		},
	},
}
