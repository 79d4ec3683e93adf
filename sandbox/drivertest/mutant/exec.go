package mutant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var exec = []Mutant{
	{
		Name: "it kills no child",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				for _, probe := range []drivertest.Probe{drivertest.Daemon, drivertest.Jobs} {
					if args, ok := says(h, cmd, probe); ok && len(args) == 1 {
						// The child runs on its own, so that what ends the
						// program does not end it.
						child := driver.Cmd{Args: h.Programs.Argv(drivertest.Beat, args[0]), Timeout: time.Minute}
						if _, err := s.Start(ctx, child); err != nil {
							return nil, err
						}
						cmd.Args = h.Programs.Argv(drivertest.Hang)
					}
				}
				return s.Start(ctx, cmd)
			}}
		}),
		Fails: []string{
			"exec: a program ends at its timeout, with all it started (M53, M54)",
			"exec: kill takes what left its session, not its neighbour (M40, M42, M43)",
			"output: who leaves the loop early ends the program and all it started (M78)",
			"output: a panic in the loop ends the program and all it started",
			"output: a caller who leaves in mid-stream is told plainly, and nothing goes on (M77)",
			"run: a caller who leaves is told plainly, and nothing of the program goes on",
			"exec: kill takes children in process groups of their own (M44)",
		},
	},
	{
		Name: "it ignores a command's timeout",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			if c.Timeout > 0 {
				c.Timeout = time.Hour
			}
			return c
		}}),
		Fails: []string{
			"exec: a program ends at its timeout, with all it started (M53, M54)",
			"exec: a timeout is one program's own, and no handler holds it up (M58)",
			"detach: a detached program has a timeout of its own (M74)",
			"run: the command's own timeout is told from the caller's, and what it said is kept",
		},
	},
	{
		Name: "it loses exit codes",
		Lie:  wrap(lie{exit: func(e driver.Exit) driver.Exit { e.Code = 0; return e }}),
		Fails: []string{
			"exec: exit codes arrive (M72)",
			"exec: a signal is told from an exit code",
			"exec: a missing program exits 127, one that may not run 126 (M68)",
			"exec: a program ends at its timeout, with all it started (M53, M54)",
			"exec: kill takes what left its session, not its neighbour (M40, M42, M43)",
			"exec: a cancelled start starts nothing and says so plainly", // a missing file looks like an empty one
			"secrets: they reach that command only",
			"egress.proxy: a rule opens its range and ports, to who uses the proxy",
			"egress.proxy: without rules there is no proxy, whatever the mode",
			"network: nothing is reached and no name resolves unless it is allowed",
			"egress.cidr: a rule opens its range and ports, and nothing else",
			"egress.host: a rule opens its host and ports, not the raw address",
			"caps: no more memory than allowed",
			"caps: no more disk than allowed, wherever it is writable",
			"strict: the root cannot be written, /work, /tmp and /run can",
			"multi-tenant: a sandbox so ordered keeps its tenant, and no other joins it (M121)",
			"exec: kill ends what ignores every signal that can be ignored",
			"exec: a timeout is one program's own, and no handler holds it up (M58)",
			"exec: how a program ended is the same for everybody who asks, and again",
			"exec: the hundredth program runs as the first did",
			"exec: a directory that is not there is refused by name, and nothing runs",
			"detach: a detached program in an owned sandbox is refused by name",
			"streams: a program that reads no stdin keeps its exit code",
			"network: the host's own loopback is not the sandbox's",
			"egress.cidr: a rule opens nothing to the neighbour",
			"caps: a program that runs out of memory falls alone",
			"code: it runs where it is told, and its exit status is its own",
		},
	},
	{
		Name: "it joins arguments and splits them again",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			if len(c.Args) > 8 { // leave alone what would only make noise elsewhere
				c.Args = strings.Fields(strings.Join(c.Args, " "))
			}
			return c
		}}),
		Fails: []string{
			"exec: arguments arrive as they were given (M45, M98)",
			"exec: arguments of 200 KiB arrive whole (M71)",
		},
	},
	{
		Name: "it prefers the sandbox's environment to the command's",
		Lie: wrap(lie{cmd: func(s driver.Spec, c driver.Cmd) driver.Cmd {
			c.Env = maps.Clone(c.Env)
			for k := range c.Env {
				if v, ok := s.Env[k]; ok {
					c.Env[k] = v
				}
			}
			return c
		}}),
		Fails: []string{"env: the command's wins over the sandbox's, for that command"},
	},
	{
		Name: "its errors hold the secrets",
		Lie: wrap(lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
			p, err := s.Start(ctx, cmd)
			if secret, ok := cmd.Secrets["CANARY"]; ok && err != nil {
				err = fmt.Errorf("starting with CANARY=%s: %w", secret.Reveal(), err)
			}
			return p, err
		}}),
		Fails: []string{"secrets: they show in no status, list, error or trace (M103, M104)"},
	},
	{
		Name: "a start that is cut off runs on",
		Lie: wrap(lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
			p, err := s.Start(context.WithoutCancel(ctx), cmd)
			if err == nil && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return p, err
		}}),
		Fails: []string{
			"exec: a cancelled start starts nothing and says so plainly",
			"cancel: a start leaves nothing, wherever it is cut off (M176)",
		},
	},
	{
		Name: "it says killed, and kills nothing",
		Lie:  wrap(lie{end: func(context.Context, driver.Process, driver.Cmd) error { return nil }}),
		Fails: []string{
			"cancel: a start leaves nothing, wherever it is cut off (M176)",
			"cancel: a program's kill is done, or can be asked again",
			"exec: kill takes what left its session, not its neighbour (M40, M42, M43)",
			"exec: kill takes children in process groups of their own (M44)",
			"exec: kill ends what ignores every signal that can be ignored",
			"output: who leaves the loop early ends the program and all it started (M78)",
			"output: a panic in the loop ends the program and all it started",
			"output: a caller who leaves in mid-stream is told plainly, and nothing goes on (M77)",
			"run: a caller who leaves is told plainly, and nothing of the program goes on",
			"handle: many goroutines use one at once",
			"records: a program whose start cannot be kept is ended",
		},
	},
	{
		Name: "a program's kill that was given up counts as done",
		Lie: fresh(func(drivertest.Harness) lie {
			var done sync.Map
			return lie{end: func(ctx context.Context, p driver.Process, _ driver.Cmd) error {
				if ctx.Err() != nil {
					done.Store(p, true)
					return ctx.Err()
				}
				if _, ok := done.Load(p); ok {
					return nil
				}
				return p.Kill(ctx)
			}}
		}),
		Fails: []string{
			"cancel: a program's kill is done, or can be asked again",
		},
	},
	{
		Name: "it asks programs to end, and some do not listen",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{
				cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
					if _, ok := says(h, c, drivertest.Stubborn); ok && c.Timeout > 0 {
						c.Timeout = time.Hour
					}
					return c
				},
				end: func(ctx context.Context, p driver.Process, cmd driver.Cmd) error {
					if _, ok := says(h, cmd, drivertest.Stubborn); ok {
						return nil
					}
					return p.Kill(ctx)
				},
			}
		}),
		Fails: []string{
			"exec: kill ends what ignores every signal that can be ignored",
			"exec: a timeout is one program's own, and no handler holds it up (M58)",
		},
	},
	{
		Name: "it waits for whoever holds the pipes",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
				if _, ok := says(h, c, drivertest.Leave); ok {
					c.Args = h.Programs.Argv(drivertest.Hang)
				}
				return c
			}}
		}),
		Fails: []string{
			"streams: the result waits for nobody who holds the pipes (M39)",
		},
	},
	{
		Name: "it tells how a program ended only once",
		Lie: fresh(func(drivertest.Harness) lie {
			var told sync.Map
			return lie{wait: func(ctx context.Context, p driver.Process) (driver.Exit, error) {
				exit, err := p.Wait(ctx)
				if err != nil {
					return exit, err
				}
				if _, before := told.LoadOrStore(p, true); before {
					return driver.Exit{}, &driver.Error{Code: driver.CodeNotFound, Op: "wait"}
				}
				return exit, nil
			}}
		}),
		Fails: []string{
			"exec: how a program ended is the same for everybody who asks, and again",
			"streams: the result comes without its output being read",
			"streams: what a program writes last is there, however fast it ends (M65)",
		},
	},
	{
		Name: "it tires: after sixty programs a sandbox takes no more",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			count := map[string]int{}
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				p, err := s.Start(ctx, cmd)
				if err != nil {
					return p, err
				}
				mu.Lock()
				defer mu.Unlock()
				if count[s.Status().ID]++; count[s.Status().ID] > 60 {
					return nil, errors.Join(p.Kill(ctx), &driver.Error{Code: driver.CodeExhausted, Op: "start"})
				}
				return p, nil
			}}
		}),
		Fails: []string{
			"exec: the hundredth program runs as the first did",
		},
	},
	{
		Name: "it has room for eighteen programs whose output nobody reads",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			live := map[string][]driver.Process{}
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				mu.Lock()
				defer mu.Unlock()
				id := s.Status().ID
				live[id] = slices.DeleteFunc(live[id], func(p driver.Process) bool {
					_, err := p.Wait(left(ctx))
					return !errors.Is(err, context.Canceled)
				})
				if len(live[id]) >= 18 {
					return nil, &driver.Error{Code: driver.CodeExhausted, Op: "start"}
				}
				p, err := s.Start(ctx, cmd)
				if err == nil {
					live[id] = append(live[id], p)
				}
				return p, err
			}}
		}),
		Fails: []string{
			"exec: many that nobody reads keep nobody else from running",
		},
	},
	{
		Name: "it cuts long arguments",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			c.Args = slices.Clone(c.Args)
			for i, a := range c.Args {
				c.Args[i] = a[:min(len(a), 64<<10)]
			}
			return c
		}}),
		Fails: []string{
			"exec: arguments of 200 KiB arrive whole (M71)",
			"output: characters cut between its pieces come whole as text (M60)",
		},
	},
	{
		Name: "it ignores where programs are to start",
		Lie:  wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd { c.Dir = ""; return c }}),
		Fails: []string{
			"exec: programs start in /work, or where they are told",
			"exec: a directory that is not there is refused by name, and nothing runs",
			"code: it runs where it is told, and its exit status is its own",
		},
	},
	{
		Name: "it mends malformed commands",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			if len(c.Args) == 0 {
				c.Args = []string{"true"}
			}
			c.Args = slices.Clone(c.Args)
			for i, a := range c.Args {
				c.Args[i] = strings.ReplaceAll(a, "\x00", "")
			}
			if c.Timeout <= 0 {
				c.Timeout = driver.DefaultTimeout
			}
			c.Env, c.Secrets = maps.Clone(c.Env), maps.Clone(c.Secrets)
			maps.DeleteFunc(c.Env, func(k, v string) bool { return driver.ValidateEnv("", map[string]string{k: v}) != nil })
			maps.DeleteFunc(c.Secrets, func(k string, v driver.Secret) bool {
				return driver.ValidateEnv("", map[string]string{k: v.Reveal()}) != nil
			})
			return c
		}}),
		Fails: []string{
			"exec: a malformed command is refused by name",
			"env: what cannot arrive unchanged is refused by name, for sandbox and command",
			"check: a lifetime that is none is refused, as is a timeout (M55, M56)",
			"errors: each says where it comes from, with a code there is",
		},
	},
	{
		Name: "it detaches nothing, and says nothing",
		Lie: wrap(lie{cmd: func(s driver.Spec, c driver.Cmd) driver.Cmd {
			c.Detached = c.Detached && s.Detached
			return c
		}}),
		Fails: []string{
			"detach: a detached program in an owned sandbox is refused by name",
		},
	},
	{
		Name: "what is detached has no timeout",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			if c.Detached {
				c.Timeout = time.Hour
			}
			return c
		}}),
		Fails: []string{
			"detach: a detached program has a timeout of its own (M74)",
		},
	},
	{
		Name: "a program that runs out of memory takes the others with it",
		Lie: fresh(func(h drivertest.Harness) lie {
			var mu sync.Mutex
			all := map[string][]driver.Process{}
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				mu.Lock()
				defer mu.Unlock()
				id := s.Status().ID
				if args, ok := says(h, cmd, drivertest.Hog); ok && len(args) == 1 && len(args[0]) > 2 {
					for _, p := range all[id] {
						_ = p.Kill(ctx)
					}
				}
				p, err := s.Start(ctx, cmd)
				if err == nil {
					all[id] = append(all[id], p)
				}
				return p, err
			}}
		}),
		Fails: []string{
			"caps: a program that runs out of memory falls alone",
		},
	},
}

// left is a context whose caller has left.
func left(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
