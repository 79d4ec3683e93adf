package mutant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var lifecycle = []Mutant{
	{
		Name: "it leaks on kill",
		Lie:  wrap(lie{kill: func(context.Context, driver.Sandbox) error { return nil }}),
		Fails: []string{
			"kill: the sandbox is gone when kill returns, and every handle says so",
			"create, kill: what is done at once is done for each",
			"attach: another backend joins a sandbox, uses it and ends it",
			"last: nothing is left",
			"kill: whoever waits for a program is told at once that its sandbox is gone",
			"kill: what was handed out before says gone afterwards, and never hangs (M175)",
			"kill: the files of what has ended are gone, open ones too",
			"cancel: a sandbox's kill is done, or can be asked again (M113)",
			"run: a sandbox that somebody else ended is gone, which is no timeout",
			"run: the one call gives the result and leaves nothing",
			"run: the one call leaves nothing, wherever it is cut off (M112)",
			"close: it outlives its caller's context and takes everything with it",
			"attach: another Runtime joins a sandbox, runs and reads in it, and closes it",
			"records: a sandbox whose creation cannot be kept is destroyed, and nothing of it is left",
			"errors: each says where it comes from, with a code there is",
		},
	},
	{
		Name: "it lives for ever",
		Lie: wrap(lie{order: func(s driver.Spec) driver.Spec {
			s.Lifetime, s.MaxLifetime = driver.MaxLifetime, 0
			return s
		}}),
		Fails: []string{
			"lifetime: a sandbox ends by itself, not before its time (M120)",
			"attach: another backend joins a sandbox, uses it and ends it", // which sees the true deadline
			"extend: a deadline that is past, or beyond what may be, is refused",
			"extend: nothing lives longer than was allowed at its creation",
			"lifetime: a program is told that its sandbox is gone, and it is listed no more (M114)",
			"detach: a detached sandbox ends at its deadline, though nobody owns it",
		},
	},
	{
		Name: "it dresses cancellation up as an error of its own",
		Lie: wrap(lie{err: func(err error) error {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return &driver.Error{Code: driver.CodeUnavailable, Op: "call", Err: errors.New(err.Error())}
			}
			return err
		}}),
		Fails: []string{
			"create: a cancelled create leaves nothing and says so plainly (M176)",
			"exec: a cancelled start starts nothing and says so plainly",
			"streams: a reader that gives up leaves the program running, and says so plainly",
			"cancel: a start leaves nothing, wherever it is cut off (M176)",
			"cancel: a wait that is given up says so plainly, and can be had again",
			"cancel: joining for a caller who has left says so plainly",
		},
	},
	{
		Name: "its lists ignore what was asked for",
		Lie: wrap(lie{list: func(b driver.Backend, ctx context.Context, _ map[string]string) iter.Seq2[driver.Status, error] {
			return b.List(ctx, nil)
		}}),
		Fails: []string{"list: sandboxes are found by their labels and facts, and no others (M125)"},
	},
	{
		Name: "its lists forget the caller's labels",
		Lie: wrap(lie{list: func(b driver.Backend, ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
			return func(yield func(driver.Status, error) bool) {
				for st, err := range b.List(ctx, labels) {
					st.Labels = nil
					if !yield(st, err) {
						return
					}
				}
			}
		}}),
		Fails: []string{
			"list: sandboxes are found by their labels and facts, and no others (M125)",
			"labels: names and values come back as they were given, up to their limits",
		},
	},
}

var exec = []Mutant{
	{
		Name: "it kills no child",
		Lie: func(b driver.Backend, h drivertest.Harness) driver.Backend {
			daemon := h.Programs.Argv(drivertest.Daemon)
			return backend{b, lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				if n := len(daemon); len(cmd.Args) == n+1 && slices.Equal(cmd.Args[:n], daemon) {
					// The child runs on its own, so that what ends the
					// program does not end it.
					child := driver.Cmd{Args: h.Programs.Argv(drivertest.Beat, cmd.Args[n]), Timeout: time.Minute}
					if _, err := s.Start(ctx, child); err != nil {
						return nil, err
					}
					cmd.Args = h.Programs.Argv(drivertest.Hang)
				}
				return s.Start(ctx, cmd)
			}}}
		},
		Fails: []string{
			"exec: a program ends at its timeout, with all it started (M53, M54)",
			"exec: kill takes what left its session, not its neighbour (M40, M42, M43)",
			"output: who leaves the loop early ends the program and all it started (M78)",
			"output: a panic in the loop ends the program and all it started",
			"output: a caller who leaves in mid-stream is told plainly, and nothing goes on (M77)",
			"run: a caller who leaves is told plainly, and nothing of the program goes on",
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
}

var streams = []Mutant{
	{
		Name: "it drops stderr",
		Lie: wrap(lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
			for {
				c, err := p.Recv(ctx)
				if err != nil || c.Stream != driver.Stderr {
					return c, err
				}
			}
		}}),
		Fails: []string{
			"streams: stdout and stderr arrive apart (M63)",
			"streams: the result comes without its output being read",
			"run: the one call gives the result and leaves nothing",
			"records: there is one of each operation, true to what happened",
		},
	},
	{
		Name: "it leaves stdin open",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			c.Stdin = true
			return c
		}}),
		Fails: []string{
			"streams: no stdin is end of file (M46, M47)",
			"streams: a program that was given no stdin cannot be written to",
		},
	},
	{
		Name: "it takes output for text",
		Lie: wrap(lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
			c, err := p.Recv(ctx)
			c.Data = bytes.ToValidUTF8(c.Data, []byte("\ufffd"))
			return c, err
		}}),
		Fails: []string{
			"exec: arguments arrive as they were given (M45, M98)",
			"streams: stdin arrives whole, then ends (M48, M49)",
			"streams: output is bytes (M59)",
			"env: values arrive byte for byte (M100, M101)",
			"files: every legal name serves, as bytes (M88, M95)",
		},
	},
	{
		Name: "it shows files before they are whole",
		Lie:  wrap(lie{files: func(f driver.Files) driver.Files { return hasty{f} }}),
		Fails: []string{
			"files: a file appears whole, or not at all",
			"cancel: a writer in mid-file leaves nothing, under no name, and is told plainly",
			"caps: no more disk than allowed, written from outside (M83)",
		},
	},
}

// hasty puts every piece of a file in place at once.
type hasty struct{ driver.Files }

func (h hasty) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	w, err := h.Files.Create(ctx, name, mode)
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &hastyFile{h.Files, ctx, name, mode, nil}, nil
}

type hastyFile struct {
	files driver.Files
	ctx   context.Context
	name  string
	mode  fs.FileMode
	data  []byte
}

func (f *hastyFile) Write(p []byte) (int, error) {
	f.data = append(f.data, p...)
	return len(p), f.Close()
}

func (f *hastyFile) Close() error {
	w, err := f.files.Create(f.ctx, f.name, f.mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.data)
	return errors.Join(err, w.Close())
}

var orders = []Mutant{
	{
		Name: "it ignores the network policy",
		Lie: func(b driver.Backend, h drivertest.Harness) driver.Backend {
			return backend{b, lie{order: func(s driver.Spec) driver.Spec {
				s.Network.Egress = everywhere(h.Canary)
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

var honesty = []Mutant{
	{
		Name: "it declares what it lacks",
		Lie: wrap(lie{info: func(i driver.Info) driver.Info {
			i.Capabilities = slices.Sorted(slices.Values(append(slices.Clone(i.Capabilities), driver.CanExpose)))
			return i
		}}),
		Fails: []string{"expose: it can be used"},
	},
	{
		Name: "it does what it does not declare",
		Lie: wrap(lie{info: func(i driver.Info) driver.Info {
			i.Capabilities = slices.DeleteFunc(slices.Clone(i.Capabilities), func(c driver.Capability) bool {
				return c == driver.CanDetach || c == driver.CanFiles || c == driver.CanSchedule
			})
			return i
		}}),
		Fails: []string{
			"detach, undeclared: an order for it is refused",
			"files, undeclared: every call is refused",
			"schedule, undeclared: the backend has no such method",
			"capabilities: optional methods exist exactly where they are declared",
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
			status: func(st driver.Status) driver.Status {
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
}
