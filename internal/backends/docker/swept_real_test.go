//go:build dockertest

package docker

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// between makes a backend on the engine under test that calls back at the nth
// call by which it changes something, or at each.
func between(t *testing.T, opts Options, nth int, then func()) (*Backend, *passer) {
	t.Helper()
	p, host := pass(t, needed(t, "SANDBOXIO_TEST_DOCKER"), nth, then)
	opts.Host = host
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, p
}

// TestNoSweepEndsACreationThatIsUnderWay looks, at each step of one with a
// gateway, with the eyes of a sweep that comes as late as the step may take.
func TestNoSweepEndsACreationThatIsUnderWay(t *testing.T) {
	watcher, image := engine(t)
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	began := time.Now()
	seen, made := 0, false
	var mu sync.Mutex
	b, p := between(t, watcher.opts, 0, func() {
		mu.Lock()
		defer mu.Unlock()
		if made {
			return
		}
		for st, err := range watcher.List(t.Context(), map[string]string{driver.LabelInstance: spec.Token}) {
			if err != nil {
				t.Error(err)
				return
			}
			if st.State != driver.StateCreated {
				continue
			}
			seen++
			for _, late := range []time.Duration{wayLimit, routedLimit} {
				if why := st.Overdue(began.Add(late)); why != "" {
					t.Errorf("%v after its beginning a sweep would remove it: %s", late, why)
				}
			}
			if st.Overdue(time.Now().Add(routedLimit+2*startMargin)) == "" {
				t.Error("no sweep would ever remove it")
			}
		}
	})
	create(t, b, spec)
	mu.Lock()
	defer mu.Unlock()
	made = true
	if seen < 5 {
		t.Errorf("it was seen in the making %d times, at %q", seen, p.seen)
	}
}

// TestACreatorIsToldThatItsWayWasTakenAway has somebody sweep it at steps of
// its work.
func TestACreatorIsToldThatItsWayWasTakenAway(t *testing.T) {
	watcher, image := engine(t)
	ordered := func() driver.Spec {
		s := realSpec(t, image)
		s.Network.Egress = rules(t, "allowed.example")
		return s
	}
	b, p := between(t, watcher.opts, 0, func() {})
	create(t, b, ordered())
	var steps []int // from the networks on
	for i, call := range p.seen {
		if len(steps) > 0 && !strings.HasSuffix(call, "/attach") || strings.HasSuffix(call, "/networks/create") {
			steps = append(steps, i+1)
		}
	}
	for _, nth := range steps[1 : len(steps)-1] { // both networks are there, and it is not started yet
		spec := ordered()
		var once sync.Once
		b, p := between(t, watcher.opts, nth, func() {
			once.Do(func() {
				if _, err := reap.Sweep(t.Context(), watcher, reap.Options{Kill: true, MaxAge: time.Nanosecond, Labels: map[string]string{driver.LabelInstance: spec.Token}}); err != nil {
					t.Error(err)
				}
			})
		})
		_, err := b.Create(t.Context(), spec)
		at := p.seen[nth-1]
		var e *driver.Error
		if !errors.As(err, &e) || e.Code != driver.CodeConflict || !strings.Contains(err.Error(), "removed before it was started, as a sweep does") {
			t.Errorf("after %s: %v", at, err)
		}
		if l := ofInstance(t, watcher, spec.Token); len(l) > 0 {
			t.Errorf("after %s: left %v", at, l)
		}
	}
}

// TestACreationWithAGatewayKeepsToItsTime gives it none for the sandbox.
func TestACreationWithAGatewayKeepsToItsTime(t *testing.T) {
	b, image := engine(t)
	b.routedLimit = time.Nanosecond
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	_, err := b.Create(t.Context(), spec)
	if driver.CodeOf(err) != driver.CodeUnavailable || !errors.Is(err, errLate) {
		t.Errorf("%v", err)
	}
	if l := ofInstance(t, b, spec.Token); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}
