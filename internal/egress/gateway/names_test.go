package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

func TestANameIsAskedForOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		n := newNames(func(context.Context, string) ([]netip.Addr, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return []netip.Addr{netip.MustParseAddr("::ffff:203.0.113.1")}, nil
		})
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				found, err := n.find(t.Context(), "example.com")
				if err != nil || len(found) != 1 || found[0].String() != "203.0.113.1" {
					t.Errorf("%v, %v", found, err)
				}
			})
		}
		all.Wait()
		time.Sleep(NameTTL - time.Millisecond)
		_, _ = n.find(t.Context(), "example.com")
		if got := asked.Load(); got != 1 {
			t.Errorf("asked %d times", got)
		}
		time.Sleep(time.Millisecond)
		_, _ = n.find(t.Context(), "example.com")
		if got := asked.Load(); got != 2 {
			t.Errorf("asked %d times after the answer's end", got)
		}
	})
}

func TestAFailureIsSharedAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		n := newNames(func(context.Context, string) ([]netip.Addr, error) {
			time.Sleep(time.Second)
			return nil, fmt.Errorf("failure %d", asked.Add(1))
		})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := n.find(t.Context(), "example.com"); err == nil || err.Error() != "failure 1" {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		if _, err := n.find(t.Context(), "example.com"); err == nil || err.Error() != "failure 2" {
			t.Errorf("%v", err)
		}
	})
}

func TestWhoGivesUpTakesNobodyWithHim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNames(func(ctx context.Context, _ string) ([]netip.Addr, error) {
			select {
			case <-time.After(time.Second):
				return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := n.find(ctx, "example.com"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if found, err := n.find(t.Context(), "example.com"); err != nil || len(found) != 1 {
				t.Errorf("%v, %v", found, err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
	})
}

// An answer is an answer, also when who asked for it does not wait any more.
func TestAnAnswerThatComesTooLateForItsAskerIsAnAnswer(t *testing.T) {
	t.Parallel()
	asked := 0
	n := newNames(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		asked++
		return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = n.find(gone, "example.com")
	// In a bubble of synctest, who spins would stop the clock that ends him.
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if found, err := n.find(within, "example.com"); err != nil || len(found) != 1 || asked != 1 {
		t.Errorf("%v, %v, asked %d times", found, err, asked)
	}
}

func TestQuestionsAreRationedAndMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNames(func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
		})
		let, most := 0, 0
		for i := range 5 * maxNames {
			_, err := n.find(t.Context(), fmt.Sprintf("x%d.example.com", i))
			if err == nil {
				let++
			} else if reasonOf(err, "") != egress.Rate {
				t.Fatalf("%v", err)
			}
			most = max(most, len(n.known))
			time.Sleep(10 * time.Millisecond)
		}
		if want := 5 * maxNames / 100 * nameRate; let < want || let > want+2*nameBurst {
			t.Errorf("%d of %d were asked, want about %d", let, 5*maxNames, want)
		}
		if most > maxNames {
			t.Errorf("%d are remembered", most)
		}
	})
}
