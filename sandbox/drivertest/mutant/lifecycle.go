package mutant

import (
	"context"
	"errors"
	"iter"
	"sync"
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
			"run: a sandbox that somebody else ended is gone, which is no timeout and no success (M50, M51)",
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
			"kill: a neighbour goes on",
			"create: a sandbox outlives the context that it was made with",
			"exec: kill takes what left its session, not its neighbour (M40, M42, M43)",
			"exec: a timeout is one program's own, and no handler holds it up (M58)",
			"attach: who joined and leaves ends nothing of the others'",
			"streams: a reader that stops stops its program, not the neighbours (M76)",
			"caps: a program that runs out of memory falls alone",
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
	{
		Name: "its sandboxes end with the context that they were made with",
		Lie: wrap(lie{create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
			s, err := b.Create(ctx, spec)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = s.Kill(context.WithoutCancel(ctx)) })
			}
			return s, err
		}}),
		Fails: []string{
			"create: a sandbox outlives the context that it was made with",
		},
	},
	{
		Name: "it creates for a caller who has left, and forgets it",
		Lie: wrap(lie{create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
			s, err := b.Create(context.WithoutCancel(ctx), spec)
			if err == nil && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return s, err
		}}),
		Fails: []string{
			"create: a cancelled create leaves nothing and says so plainly (M176)",
			"last: nothing is left",
		},
	},
	{
		Name: "it takes another image where there is none",
		Lie: wrap(lie{create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
			s, err := b.Create(ctx, spec)
			if driver.CodeOf(err) == driver.CodeNotFound && b.Info().DefaultImage != "" {
				spec.Image = b.Info().DefaultImage
				s, err = b.Create(ctx, spec)
			}
			return s, err
		}}),
		Fails: []string{
			"create: an image that does not exist is an error that leaves nothing (M119)",
		},
	},
	{
		Name: "it hands a sandbox out twice",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			alive := map[string]driver.Sandbox{}
			return lie{
				create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
					mu.Lock()
					defer mu.Unlock()
					for _, s := range alive {
						if st := s.Status(); st.Detached == spec.Detached && st.Deadline.Sub(st.Created) == spec.Lifetime {
							return s, nil
						}
					}
					s, err := b.Create(ctx, spec)
					if err == nil {
						alive[s.Status().ID] = s
					}
					return s, err
				},
				kill: func(ctx context.Context, s driver.Sandbox) error {
					mu.Lock()
					defer mu.Unlock()
					delete(alive, s.Status().ID)
					return s.Kill(ctx)
				},
			}
		}),
		Fails: []string{
			"egress.proxy: a rule opens its range and ports, to who uses the proxy",
			"create, kill: what is done at once is done for each",
			"kill: a neighbour goes on",
			"create: two sandboxes are two, and share no files (M121)",
			"env: a name that the image has too is there once, with the sandbox's value (M99)",
			"egress.cidr: a rule opens its range and ports, and nothing else",
			"egress.host: a rule opens its host and ports, not the raw address",
			"egress.cidr: a rule opens nothing to the neighbour",
			"caps: no more CPU than allowed",
			"list: sandboxes are found by their labels and facts, and no others (M125)",
			"schedule: it sweeps what it covers and nothing else (M111)",
		},
	},
	{
		Name: "it keeps the caller's own maps",
		Lie: wrap(lie{status: func(spec driver.Spec, st driver.Status) driver.Status {
			if spec.Labels != nil {
				st.Labels = spec.Labels
			}
			return st
		}}),
		Fails: []string{
			"create: what was ordered is not changed through the caller's maps afterwards",
		},
	},
	{
		Name: "it forgets whose session it is",
		Lie:  wrap(lie{status: func(_ driver.Spec, st driver.Status) driver.Status { st.Facts.Session = ""; return st }}),
		Fails: []string{
			"create: the sandbox is what was ordered",
		},
	},
	{
		Name: "it kills the neighbours too",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			var all []driver.Sandbox
			return lie{
				create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
					s, err := b.Create(ctx, spec)
					if err == nil {
						mu.Lock()
						all = append(all, s)
						mu.Unlock()
					}
					return s, err
				},
				kill: func(ctx context.Context, s driver.Sandbox) error {
					mu.Lock()
					defer mu.Unlock()
					err := s.Kill(ctx)
					for _, s := range all {
						err = errors.Join(err, s.Kill(ctx))
					}
					all = nil
					return err
				},
			}
		}),
		Fails: []string{
			"kill: a neighbour goes on",
		},
	},
	{
		Name: "killing what is gone is an error",
		Lie: wrap(lie{kill: func(ctx context.Context, s driver.Sandbox) error {
			if _, err := s.Start(ctx, driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); errors.Is(err, driver.CodeGone) {
				return err
			}
			return s.Kill(ctx)
		}}),
		Fails: []string{
			"kill: killing what is gone succeeds (M115)",
			"create, kill: what is done at once is done for each",
			"cancel: a sandbox's kill is done, or can be asked again (M113)",
		},
	},
	{
		Name: "a kill that was given up counts as done",
		Lie: fresh(func(drivertest.Harness) lie {
			var done sync.Map
			return lie{kill: func(ctx context.Context, s driver.Sandbox) error {
				if ctx.Err() != nil {
					done.Store(s.Status().ID, true)
					return ctx.Err()
				}
				if _, ok := done.Load(s.Status().ID); ok {
					return nil
				}
				return s.Kill(ctx)
			}}
		}),
		Fails: []string{
			"cancel: a sandbox's kill is done, or can be asked again (M113)",
			"last: nothing is left",
		},
	},
	{
		Name: "whoever waits for what was killed waits on",
		Lie: wrap(lie{wait: func(ctx context.Context, p driver.Process) (driver.Exit, error) {
			exit, err := p.Wait(ctx)
			if errors.Is(err, driver.CodeGone) {
				<-ctx.Done()
				err = ctx.Err()
			}
			return exit, err
		}}),
		Fails: []string{
			"kill: the sandbox is gone when kill returns, and every handle says so",
			"kill: whoever waits for a program is told at once that its sandbox is gone",
			"lifetime: a program is told that its sandbox is gone, and it is listed no more (M114)",
		},
	},
	{
		Name: "a detached sandbox lives for ever",
		Lie: wrap(lie{order: func(s driver.Spec) driver.Spec {
			if s.Detached {
				s.Lifetime = driver.MaxLifetime
			}
			return s
		}}),
		Fails: []string{
			"detach: a detached sandbox ends at its deadline, though nobody owns it",
		},
	},
	{
		Name: "its sandboxes end when it is closed",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			var all []driver.Sandbox
			keep := func(s driver.Sandbox, err error) (driver.Sandbox, error) {
				if err == nil {
					mu.Lock()
					all = append(all, s)
					mu.Unlock()
				}
				return s, err
			}
			return lie{
				create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
					return keep(b.Create(ctx, spec))
				},
				attach: func(ctx context.Context, b driver.Backend, id string) (driver.Sandbox, error) {
					return keep(b.Attach(ctx, id))
				},
				close: func(b driver.Backend) error {
					mu.Lock()
					defer mu.Unlock()
					var err error
					for _, s := range all {
						err = errors.Join(err, s.Kill(context.Background()))
					}
					return errors.Join(err, b.Close())
				},
			}
		}),
		Fails: []string{
			"attach: who joined and leaves ends nothing of the others'",
			"detach: a detached sandbox and its programs outlive their backend",
		},
	},
	{
		Name: "closed, it goes on",
		Lie:  wrap(lie{close: func(driver.Backend) error { return nil }}),
		Fails: []string{
			"close: a closed backend refuses, and kills nothing",
		},
	},
}
