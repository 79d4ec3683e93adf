package docker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// extendable makes a sandbox that may live for an hour from its creation.
func extendable(t *testing.T, f *fakeEngine) (*Backend, driver.Sandbox) {
	t.Helper()
	b := f.open(t)
	spec := testSpec("one")
	spec.MaxLifetime = time.Hour
	sb, err := b.Create(limited(t, 20*time.Second), spec)
	if err != nil {
		t.Fatal(err)
	}
	return b, sb
}

func extend(ctx context.Context, sb driver.Sandbox, deadline time.Time) error {
	e, ok := driver.As[driver.Extender](sb)
	if !ok {
		return errors.New("it cannot be extended")
	}
	return e.Extend(ctx, deadline)
}

// stands gives the two places where a deadline stands: the name, as a sweep
// reads it, and PID 1.
func (f *fakeEngine) stands(t *testing.T, id string) (named, inside time.Time) {
	t.Helper()
	c := f.find(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	named, _, ok := deadlineOf(c.Name, c.Config.Labels)
	if !ok {
		t.Fatalf("no deadline in %q", c.Name)
	}
	return named, c.deadline
}

func in(d time.Duration) time.Time { return time.Now().Add(d).Truncate(time.Second) }

func TestADeadlineMovesInBothPlacesAndIsSeenByAll(t *testing.T) {
	f := newFake(t)
	b, sb := extendable(t, f)
	other, err := f.open(t).Attach(t.Context(), sb.Status().ID) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by driver.Sandbox
		at time.Time
	}{"later, by its creator": {sb, in(10 * time.Minute)}, "later, from elsewhere": {other, in(20 * time.Minute)}, "earlier, from elsewhere": {other, in(30 * time.Second)}, "once more": {other, in(30 * time.Second)}} {
		if err := extend(limited(t, 10*time.Second), c.by, c.at); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if named, inside := f.stands(t, sb.Status().ID); !named.Equal(c.at) || !inside.Equal(c.at) {
			t.Errorf("%s: the name says %v, PID 1 %v, want %v", name, named, inside, c.at)
		}
		if st := c.by.Status(); !st.Deadline.Equal(c.at) || st.Name != containerName("one", c.at) {
			t.Errorf("%s: status %+v", name, st)
		}
		for st, err := range b.List(t.Context(), nil) {
			if err != nil || !st.Deadline.Equal(c.at) {
				t.Errorf("%s: listed as %v, %v", name, st.Deadline, err)
			}
		}
	}
	if at := in(time.Minute).Add(time.Millisecond); extend(t.Context(), sb, at) != nil || !sb.Status().Deadline.Equal(at.Truncate(time.Second).Add(time.Second)) {
		t.Errorf("part of a second: %v", sb.Status().Deadline)
	}
}

func TestADeadlineIsNotMovedBeyondWhatWasGrantedNorIntoThePast(t *testing.T) {
	f := newFake(t)
	_, sb := extendable(t, f)
	other, err := f.open(t).Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	named, inside := f.stands(t, sb.Status().ID)
	for name, at := range map[string]time.Time{"beyond": in(time.Hour + 2*time.Second), "far beyond": in(1000 * time.Hour), "the past": in(-2 * time.Second), "no time": {}} {
		for who, s := range map[string]driver.Sandbox{"its creator": sb, "another process": other} {
			var e *driver.Error
			if err := extend(t.Context(), s, at); !errors.As(err, &e) || e.Code != driver.CodeInvalid || e.Field != "deadline" {
				t.Errorf("%s, %s: %v", name, who, err)
			}
		}
	}
	if n, i := f.stands(t, sb.Status().ID); !n.Equal(named) || !i.Equal(inside) {
		t.Errorf("something moved: %v %v", n, i)
	}
	spec := testSpec("two") // without a MaxLifetime
	fixed, err := f.open(t).Create(limited(t, 20*time.Second), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := extend(t.Context(), fixed, fixed.Status().Deadline.Add(time.Second)); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("what was made without MaxLifetime: %v", err)
	}
}

// A sweep may look at any moment; it must never find a deadline that is
// earlier than both the old and the new one, nor one that PID 1 outlives.
func TestASweepThatLooksBetweenTheStepsDoesNoHarm(t *testing.T) {
	for name, at := range map[string]time.Time{"later": in(10 * time.Minute), "earlier": in(20 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			_, sb := extendable(t, f)
			old := sb.Status().Deadline
			var looks atomic.Int64
			f.hook(nil, func(string) {
				looks.Add(1)
				named, inside := f.stands(t, sb.Status().ID)
				if !named.Equal(old) && !named.Equal(at) {
					t.Errorf("the name says %v", named)
				}
				if inside.After(named.Add(time.Second)) && at.After(old) {
					t.Errorf("a sweep kills at %v what PID 1 lets live until %v", named, inside)
				}
			})
			if err := extend(limited(t, 10*time.Second), sb, at); err != nil {
				t.Fatal(err)
			}
			if n := looks.Load(); n < 4 {
				t.Errorf("only %d looks", n)
			}
		})
	}
}

func TestAFailureHalfWayLeavesTheLaterDeadlineAtTheLatest(t *testing.T) {
	for name, at := range map[string]time.Time{"later": in(10 * time.Minute), "earlier": in(20 * time.Second)} {
		for _, call := range []string{"inspect", "rename", "guest"} {
			for how, do := range map[string]fault{"refused": refuse, "dropped": drop, "answer lost": lose} {
				t.Run(name+"/"+call+"/"+how, func(t *testing.T) {
					f := newFake(t)
					_, sb := extendable(t, f)
					old := sb.Status().Deadline
					var well atomic.Bool
					f.mu.Lock()
					f.refuses = func() bool { return call == "guest" && !well.Load() }
					f.mu.Unlock()
					f.hook(func(c string, _ http.ResponseWriter) fault {
						if c == call && !well.Load() {
							return do
						}
						return none
					}, nil)
					err := extend(limited(t, 10*time.Second), sb, at)
					if err == nil || errors.Is(err, driver.CodeLeaked) || driver.CodeOf(err) == "" {
						t.Errorf("%v", err)
					}
					latest := slices.MaxFunc([]time.Time{old, at}, time.Time.Compare)
					if named, inside := f.stands(t, sb.Status().ID); named.After(latest) || inside.After(latest) {
						t.Errorf("the name says %v, PID 1 %v, the later was %v", named, inside, latest)
					}
					well.Store(true)
					if err := extend(limited(t, 10*time.Second), sb, at); err != nil {
						t.Fatalf("once more: %v", err)
					}
					if named, inside := f.stands(t, sb.Status().ID); !named.Equal(at) || !inside.Equal(at) {
						t.Errorf("once more: the name says %v, PID 1 %v", named, inside)
					}
				})
			}
		}
	}
}

func TestOfManyWhoExtendAtATimeOneWinsInBothPlaces(t *testing.T) {
	f := newFake(t)
	_, sb := extendable(t, f)
	for round := range 10 {
		var all sync.WaitGroup
		for i := range 6 {
			s := sb
			if i%2 == 1 {
				var err error
				if s, err = f.open(t).Attach(t.Context(), sb.Status().ID); err != nil {
					t.Fatal(err)
				}
			}
			all.Go(func() {
				if err := extend(limited(t, 20*time.Second), s, in(time.Duration(round*7+i*3+5)*time.Minute/2)); err != nil {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		if named, inside := f.stands(t, sb.Status().ID); !named.Equal(inside) {
			t.Errorf("round %d: the name says %v, PID 1 %v", round, named, inside)
		}
	}
}

func TestWhatDoesNotRunIsNotExtended(t *testing.T) {
	for state, code := range map[container.ContainerState]driver.Code{container.StatePaused: driver.CodeConflict, container.StateExited: driver.CodeGone, container.StateRemoving: driver.CodeGone} {
		f := newFake(t)
		_, sb := extendable(t, f)
		f.mu.Lock()
		f.containers[sb.Status().ID].State = state
		f.mu.Unlock()
		if err := extend(t.Context(), sb, in(10*time.Minute)); !errors.Is(err, code) {
			t.Errorf("%s: %v", state, err)
		}
		if slices.Contains(f.called(), "rename") {
			t.Errorf("%s: it was renamed", state)
		}
	}
	f := newFake(t)
	_, sb := extendable(t, f)
	f.hook(nil, func(c string) {
		if c == "rename" { // it ends while it is being extended
			f.mu.Lock()
			box := f.containers[sb.Status().ID]
			delete(f.containers, sb.Status().ID)
			f.mu.Unlock()
			box.end()
		}
	})
	if err := extend(limited(t, 10*time.Second), sb, in(10*time.Minute)); !errors.Is(err, driver.CodeGone) {
		t.Errorf("one that ends meanwhile: %v", err)
	}
}

func TestM176ACancelledExtendIsTheContextsErrorAndLeavesOneOfTheTwoDeadlines(t *testing.T) {
	for _, call := range []string{"inspect", "exec", "execstart", "wait", "rename", "guest"} {
		for _, how := range []fault{hang, none} {
			t.Run(call+map[fault]string{hang: "/during", none: "/after"}[how], func(t *testing.T) {
				f := newFake(t)
				_, creator := extendable(t, f)
				old, at := creator.Status().Deadline, in(10*time.Minute)
				sb, err := f.open(t).Attach(t.Context(), creator.Status().ID)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(limited(t, 20*time.Second))
				defer cancel()
				var well atomic.Bool
				f.hook(func(c string, _ http.ResponseWriter) fault {
					if c != call || well.Load() {
						return none
					}
					if how == hang {
						time.AfterFunc(10*time.Millisecond, cancel)
					}
					return how
				}, func(c string) {
					if c == call && (how == none || call == "guest") {
						cancel()
					}
				})
				err = extend(ctx, sb, at)
				if err != nil && (!errors.Is(err, context.Canceled) || driver.CodeOf(err) != "") {
					t.Errorf("not the context's own error: %v", err)
				}
				well.Store(true)
				named, inside := f.stands(t, sb.Status().ID)
				if !named.Equal(old) && !named.Equal(at) || inside.After(at) {
					t.Errorf("the name says %v, PID 1 %v", named, inside)
				}
				if err := extend(limited(t, 10*time.Second), creator, at); err != nil {
					t.Errorf("the creator, afterwards: %v", err)
				}
			})
		}
	}
}

func TestANameThatIsTakenIsAConflict(t *testing.T) {
	f := newFake(t)
	_, sb := extendable(t, f)
	at := in(10 * time.Minute)
	f.mu.Lock()
	f.containers["squatter"] = &fakeContainer{ID: strings.Repeat("e", 64), Name: containerName("one", at), exited: make(chan struct{})}
	f.mu.Unlock()
	if err := extend(t.Context(), sb, at); !errors.Is(err, driver.CodeConflict) {
		t.Errorf("%v", err)
	}
}
