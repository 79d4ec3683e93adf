package reap_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// station is a backend with what a test puts into it.
type station struct {
	driver.Backend
	all     []driver.Status
	skew    time.Duration
	filters bool // a server that honours the filter
	onList  func()
	killErr error
	killed  []string
}

func (s *station) Info() driver.Info {
	return driver.Info{Name: "station", Capabilities: []driver.Capability{driver.CanList}}
}
func (s *station) Now(context.Context) (time.Time, error) { return time.Now().Add(s.skew), nil }

func (s *station) List(_ context.Context, want map[string]string) iter.Seq2[driver.Status, error] {
	return func(yield func(driver.Status, error) bool) {
		for _, st := range s.all {
			if s.filters && !driver.HasLabels(st.Facts.Labels(driver.RoleSandbox, st.Created, st.Deadline), want) {
				continue
			}
			if !yield(st, nil) {
				return
			}
		}
		if s.onList != nil {
			s.onList()
		}
	}
}

func (s *station) Attach(_ context.Context, id string) (driver.Sandbox, error) {
	for i := range s.all {
		if s.all[i].ID == id {
			return &one{s, i}, nil
		}
	}
	return nil, &driver.Error{Code: driver.CodeGone}
}

type one struct {
	s *station
	i int
}

func (o *one) Status() driver.Status { return o.s.all[o.i] }
func (o *one) Start(context.Context, driver.Cmd) (driver.Process, error) {
	return nil, driver.CodeUnsupported
}
func (o *one) Files() driver.Files { return nil }
func (o *one) Kill(context.Context) error {
	if o.s.killErr != nil {
		return o.s.killErr
	}
	o.s.killed = append(o.s.killed, o.s.all[o.i].ID)
	return nil
}

// at makes a status by its age and what it has left to live.
func at(id string, state driver.State, age, left time.Duration, facts driver.Facts) driver.Status {
	now := time.Now()
	st := driver.Status{ID: id, State: state, Created: now.Add(-age), Deadline: now.Add(left), Facts: facts}
	if state == driver.StateExited {
		st.Ended = now.Add(-age)
	}
	return st
}

func TestSweepTakesWhatIsDueAndNothingElse(t *testing.T) {
	t.Parallel()
	mine := driver.Facts{Reaper: "nightly", Owner: "a"}
	for _, c := range []struct {
		name string
		opts reap.Options
		all  []driver.Status
		want []string
	}{
		{"nothing there", reap.Options{Kill: true}, nil, nil},
		{"past its deadline", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateRunning, time.Hour, -time.Second, mine)}, []string{"x"}},
		{"paused past its deadline", reap.Options{Kill: true}, []driver.Status{at("x", driver.StatePaused, time.Hour, -time.Second, mine)}, []string{"x"}},
		{"a live sibling", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateRunning, time.Hour, time.Second, mine)}, nil},
		{"just created, not started yet", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateCreated, 9*time.Second, time.Hour, mine)}, nil},
		{"created and never started", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateCreated, 11*time.Second, time.Hour, mine)}, []string{"x"}},
		{"just ended", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateExited, 4*time.Second, time.Hour, mine)}, nil},
		{"ended and never removed", reap.Options{Kill: true}, []driver.Status{at("x", driver.StateExited, 6*time.Second, time.Hour, mine)}, []string{"x"}},
		{"older than the schedule allows", reap.Options{Kill: true, MaxAge: time.Minute}, []driver.Status{at("x", driver.StateRunning, 2*time.Minute, time.Hour, mine), at("y", driver.StateRunning, 30*time.Second, time.Hour, mine)}, []string{"x"}},
		{"a server that ignores the filter (M125)", reap.Options{Kill: true, Labels: map[string]string{driver.LabelReaper: "nightly"}},
			[]driver.Status{at("x", driver.StateRunning, time.Hour, -time.Hour, driver.Facts{Reaper: "other"}), at("y", driver.StateRunning, time.Hour, -time.Hour, mine)}, []string{"y"}},
		{"two labels must both be there (M108)", reap.Options{Kill: true, Labels: map[string]string{driver.LabelReaper: "nightly", driver.LabelOwner: "b"}},
			[]driver.Status{at("x", driver.StateRunning, time.Hour, -time.Hour, mine)}, nil},
		{"a dry run kills nothing", reap.Options{}, []driver.Status{at("x", driver.StateRunning, time.Hour, -time.Second, mine)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { // in turn, since what is due is so by the second
			s := &station{all: c.all}
			rep, err := reap.Sweep(t.Context(), s, c.opts)
			if err != nil || !slices.Equal(s.killed, c.want) || rep.Seen != len(c.all) {
				t.Errorf("killed %v, want %v; %+v, %v", s.killed, c.want, rep, err)
			}
			if c.opts.Kill && rep.Removed() != len(c.want) || !c.opts.Kill && len(rep.Items) != 1 {
				t.Errorf("reported %+v", rep.Items)
			}
		})
	}
}

func TestSandboxThatWasGivenMoreTimeSinceItWasListedIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := &station{all: []driver.Status{at("x", driver.StateRunning, time.Hour, -time.Second, driver.Facts{})}}
	s.onList = func() { s.all[0].Deadline = time.Now().Add(time.Hour) }
	rep, err := reap.Sweep(t.Context(), s, reap.Options{Kill: true})
	if err != nil || len(s.killed) > 0 || len(rep.Items) > 0 {
		t.Errorf("killed %v, %+v, %v", s.killed, rep, err)
	}
}

func TestSweepRefusesAWrongClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, skew := range []time.Duration{31 * time.Second, -31 * time.Second} {
			s := &station{skew: skew, all: []driver.Status{at("x", driver.StateRunning, time.Hour, -time.Hour, driver.Facts{})}}
			if _, err := reap.Sweep(t.Context(), s, reap.Options{Kill: true}); !errors.Is(err, driver.CodeConflict) || len(s.killed) > 0 {
				t.Errorf("skew %v: %v, killed %v", skew, err, s.killed)
			}
		}
		s := &station{skew: 29 * time.Second}
		if _, err := reap.Sweep(t.Context(), s, reap.Options{}); err != nil {
			t.Error(err)
		}
	})
}

func TestFailuresAreReportedAndDoNotStopTheSweep(t *testing.T) {
	t.Parallel()
	s := &station{killErr: &driver.Error{Code: driver.CodeUnavailable}, all: []driver.Status{
		at("x", driver.StateRunning, time.Hour, -time.Hour, driver.Facts{}), at("y", driver.StateRunning, time.Hour, -time.Hour, driver.Facts{}),
	}}
	rep, err := reap.Sweep(t.Context(), s, reap.Options{Kill: true})
	if !errors.Is(err, driver.CodeUnavailable) || len(rep.Items) != 2 || rep.Removed() != 0 || rep.Items[1].Err == nil {
		t.Errorf("%+v, %v", rep, err)
	}
}
