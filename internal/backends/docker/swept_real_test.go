//go:build dockertest

package docker

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// between makes a backend on the engine under test that calls back at each call
// by which it makes or starts something, with how many there have been.
func between(t *testing.T, opts Options, then func(nth int)) (*Backend, func() []string) {
	t.Helper()
	var p *passer
	made := func() []string {
		p.mu.Lock()
		defer p.mu.Unlock()
		// How often it takes to remove something is a matter of time.
		return slices.DeleteFunc(slices.Clone(p.seen), func(call string) bool { return strings.HasPrefix(call, "DELETE ") })
	}
	p, opts.Host = pass(t, needed(t, "SANDBOXIO_TEST_DOCKER"), 0, func() { then(len(made())) })
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, made
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
	b, calls := between(t, watcher.opts, func(int) {
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
		t.Errorf("it was seen in the making %d times, at %q", seen, calls())
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
	b, made := between(t, watcher.opts, func(int) {})
	create(t, b, ordered())
	whole := made()
	first := 2 + slices.IndexFunc(whole, func(call string) bool { return strings.HasSuffix(call, "/networks/create") }) // both are there
	for nth := first + 1; nth < len(whole); nth++ {                                                                     // and it is not started yet
		if strings.HasSuffix(whole[nth-1], "/attach") {
			continue
		}
		spec := ordered()
		var once sync.Once
		b, _ := between(t, watcher.opts, func(now int) {
			if now < nth {
				return
			}
			once.Do(func() {
				if _, err := reap.Sweep(t.Context(), watcher, reap.Options{Kill: true, MaxAge: time.Nanosecond, Labels: map[string]string{driver.LabelInstance: spec.Token}}); err != nil {
					t.Error(err)
				}
			})
		})
		_, err := b.Create(t.Context(), spec)
		var e *driver.Error
		if !errors.As(err, &e) || e.Code != driver.CodeConflict || !strings.Contains(err.Error(), "removed before it was started, as a sweep does") {
			t.Errorf("after %s: %v", whole[nth-1], err)
		}
		if l := ofInstance(t, watcher, spec.Token); len(l) > 0 {
			t.Errorf("after %s: left %v", whole[nth-1], l)
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
