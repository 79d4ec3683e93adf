package mutant

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var finding = []Mutant{
	{
		Name: "its lists ignore their context",
		Lie: wrap(lie{list: func(b driver.Backend, ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
			return b.List(context.WithoutCancel(ctx), labels)
		}}),
		Fails: []string{
			"cancel: a list ends where its caller leaves, and says so plainly",
		},
	},
	{
		Name: "its lists know a tier",
		Lie: wrap(lie{list: func(b driver.Backend, ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
			return func(yield func(driver.Status, error) bool) {
				for st, err := range b.List(ctx, labels) {
					st.Isolation = driver.MicroVM
					if !yield(st, err) {
						return
					}
				}
			}
		}}),
		Fails: []string{
			"isolation: a list claims none, since it measures none",
		},
	},
	{
		Name: "its lists show what has ended",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			var ended []driver.Status
			return lie{
				create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
					s, err := b.Create(ctx, spec)
					if err == nil {
						mu.Lock()
						ended = append(ended, s.Status()) // sooner or later
						mu.Unlock()
					}
					return s, err
				},
				list: func(b driver.Backend, ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
					return func(yield func(driver.Status, error) bool) {
						seen := map[string]bool{}
						for st, err := range b.List(ctx, labels) {
							if seen[st.ID] = true; !yield(st, err) || err != nil {
								return
							}
						}
						mu.Lock()
						all := slices.Clone(ended)
						mu.Unlock()
						for _, st := range all {
							st.Isolation, st.Evidence = driver.Unverified, driver.Evidence{}
							if !seen[st.ID] && driver.HasLabels(st.Labels, labels) && !yield(st, nil) {
								return
							}
						}
					}
				},
			}
		}),
		Fails: []string{
			"kill: the sandbox is gone when kill returns, and every handle says so",
			"lifetime: a program is told that its sandbox is gone, and it is listed no more (M114)",
			"run: the one call gives the result and leaves nothing",
			"run: the one call leaves nothing, wherever it is cut off (M112)",
			"close: it outlives its caller's context and takes everything with it",
			"records: a sandbox whose creation cannot be kept is destroyed, and nothing of it is left",
		},
	},
	{
		Name: "its clock is an hour slow",
		Lie:  wrap(lie{clock: func(c driver.Clock) driver.Clock { return slow{c} }}),
		Fails: []string{
			"list: the backend tells its own time",
		},
	},
	{
		Name: "it joins what has ended",
		Lie: fresh(func(drivertest.Harness) lie {
			var known sync.Map
			return lie{attach: func(ctx context.Context, b driver.Backend, id string) (driver.Sandbox, error) {
				s, err := b.Attach(ctx, id)
				if err == nil {
					known.Store(id, s)
				} else if was, ok := known.Load(id); ok {
					return was.(driver.Sandbox), nil //nolint:forcetypeassert // nothing else is stored
				}
				return s, err
			}}
		}),
		Fails: []string{
			"detach: a detached sandbox ends at its deadline, though nobody owns it",
			"attach: another backend joins a sandbox, uses it and ends it",
		},
	},
	{
		Name: "it creates what it cannot join",
		Lie: fresh(func(drivertest.Harness) lie {
			var last driver.Spec
			var mu sync.Mutex
			return lie{
				create: func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
					mu.Lock()
					last = spec
					mu.Unlock()
					return b.Create(ctx, spec)
				},
				attach: func(ctx context.Context, b driver.Backend, id string) (driver.Sandbox, error) {
					s, err := b.Attach(ctx, id)
					mu.Lock()
					defer mu.Unlock()
					if err != nil && ctx.Err() == nil && last.Token != "" {
						last.Token = "dt" + rand.Text()[:16]
						last.Facts.Instance = last.Token
						return b.Create(ctx, last)
					}
					return s, err
				},
			}
		}),
		Fails: []string{
			"kill: what was handed out before says gone afterwards, and never hangs (M175)",
			"detach: a detached sandbox ends at its deadline, though nobody owns it",
			"attach: it creates nothing",
			"last: nothing is left",
		},
	},
	{
		Name: "who joins throws out who joined before",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			latest := map[string]*seat{}
			return lie{attach: func(ctx context.Context, b driver.Backend, id string) (driver.Sandbox, error) {
				s, err := b.Attach(ctx, id)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				if before := latest[id]; before != nil {
					before.lost.Store(true)
				}
				latest[id] = &seat{Sandbox: s}
				return latest[id], nil
			}}
		}),
		Fails: []string{
			"attach: several who joined at once get each their own answers",
		},
	},
	{
		Name: "its extensions change what is shown, and nothing else",
		Lie: fresh(func(drivertest.Harness) lie {
			var shown sync.Map
			show := func(st driver.Status) driver.Status {
				if to, ok := shown.Load(st.ID); ok {
					st.Deadline, _ = to.(time.Time)
				}
				return st
			}
			return lie{
				extend: func(ctx context.Context, s driver.Sandbox, to time.Time) error {
					// What it refuses stays refused.
					e, _ := driver.As[driver.Extender](s)
					was := s.Status().Deadline
					if to.Before(was) && to.After(time.Now()) {
						// Nearer, and gone before it could be moved back.
						shown.Store(s.Status().ID, to)
						return e.Extend(ctx, was)
					}
					if err := e.Extend(ctx, to); err != nil {
						return err
					}
					shown.Store(s.Status().ID, to)
					return e.Extend(ctx, was)
				},
				status: func(_ driver.Spec, st driver.Status) driver.Status { return show(st) },
				list: func(b driver.Backend, ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
					return func(yield func(driver.Status, error) bool) {
						for st, err := range b.List(ctx, labels) {
							// Not once it is past: a sweep of a neighbour's would
							// make it true.
							if lied := show(st); lied.Deadline.After(time.Now()) {
								st = lied
							}
							if !yield(st, err) {
								return
							}
						}
					}
				},
			}
		}),
		Fails: []string{
			"extend: who joined moves the same deadline (M173)",
			"extend: a deadline can be brought nearer",
			"extend: a sandbox lives to its new deadline, and ends then",
		},
	},
	{
		Name: "it says yes to every extension",
		Lie: wrap(lie{extend: func(ctx context.Context, s driver.Sandbox, to time.Time) error {
			e, _ := driver.As[driver.Extender](s)
			if err := e.Extend(ctx, to); driver.CodeOf(err) != driver.CodeInvalid {
				return err
			}
			return nil
		}}),
		Fails: []string{
			"extend: a deadline that is past, or beyond what may be, is refused",
			"extend: nothing lives longer than was allowed at its creation",
		},
	},
	{
		Name: "it extends for a caller who has left",
		Lie: wrap(lie{extend: func(ctx context.Context, s driver.Sandbox, to time.Time) error {
			e, _ := driver.As[driver.Extender](s)
			return errors.Join(e.Extend(context.WithoutCancel(ctx), to), ctx.Err())
		}}),
		Fails: []string{
			"extend: for a caller who has left, nothing moves, and he is told plainly",
		},
	},
	{
		Name: "it takes any schedule",
		Lie:  wrap(lie{schedule: func(s driver.Scheduler) driver.Scheduler { return lax{s} }}),
		Fails: []string{
			"schedule: a malformed one is refused by name",
		},
	},
	{
		Name: "its schedules are kept, and never carried out",
		Lie: fresh(func(drivertest.Harness) lie {
			return lie{schedule: func(s driver.Scheduler) driver.Scheduler { return idle{s} }}
		}),
		Fails: []string{
			"schedule: it sweeps what it covers and nothing else (M111)",
		},
	},
}

// slow is a clock that is wrong.
type slow struct{ driver.Clock }

func (c slow) Now(ctx context.Context) (time.Time, error) {
	now, err := c.Clock.Now(ctx)
	return now.Add(-time.Hour), err
}

// seat is a place that somebody else can take.
type seat struct {
	driver.Sandbox
	lost atomic.Bool
}

func (s *seat) Unwrap() driver.Sandbox { return s.Sandbox }

func (s *seat) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	if s.lost.Load() {
		return nil, &driver.Error{Code: driver.CodeUnavailable, Op: "start", Sandbox: s.Status().ID}
	}
	return s.Sandbox.Start(ctx, cmd)
}

// lax says that what is malformed runs.
type lax struct{ driver.Scheduler }

func (l lax) PutSchedule(ctx context.Context, s driver.Schedule) (driver.ScheduleStatus, error) {
	st, err := l.Scheduler.PutSchedule(ctx, s)
	if c := driver.CodeOf(err); c == driver.CodeInvalid || c == driver.CodeUnsupported {
		return driver.ScheduleStatus{Schedule: s, Running: true}, nil
	}
	return st, err
}

// idle sweeps nothing.
type idle struct{ driver.Scheduler }

func (i idle) PutSchedule(ctx context.Context, s driver.Schedule) (driver.ScheduleStatus, error) {
	dry := s
	dry.DryRun = true
	st, err := i.Scheduler.PutSchedule(ctx, dry)
	st.DryRun = s.DryRun
	return st, err
}
