package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// gate is a sink that waits to be let through, and fails where it is told to.
type gate struct {
	open chan struct{}
	fail map[string]error

	mu  sync.Mutex
	ops []string
	got []any // what it found in its contexts
}

type key struct{}

func (g *gate) Record(ctx context.Context, r sandbox.Record) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ops, g.got = append(g.ops, r.Op), append(g.got, ctx.Value(key{}))
	return g.fail[r.Op]
}

func TestAQueueKeepsOrderAndTheCallersValues(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	close(g.open)
	q := NewQueue(g, QueueOptions{})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "span"))
	for i := range 20 {
		if err := q.Record(ctx, record(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, op := range g.ops {
		if op != fmt.Sprint(i) || g.got[i] != "span" {
			t.Errorf("%d is %s with %v", i, op, g.got[i])
		}
	}
	if len(g.ops) != 20 {
		t.Errorf("%d records", len(g.ops))
	}
	if err := q.Record(t.Context(), record("late")); !errors.Is(err, sandbox.CodeUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAFullQueueFailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		q := NewQueue(g, QueueOptions{Size: 2})
		var kept int
		for range 10 {
			if err := q.Record(t.Context(), record("run")); err == nil {
				kept++
			} else if !errors.Is(err, sandbox.CodeExhausted) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
		}
		if kept != 3 { // one is under way
			t.Errorf("%d were taken", kept)
		}
		close(g.open)
		if err := q.Close(t.Context()); err != nil || len(g.ops) != kept {
			t.Errorf("%v, %d kept", err, len(g.ops))
		}
	})
}

func TestAFailureBehindTheQueueIsToldByTheNextRecordAndByClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{}), fail: map[string]error{"bad": errors.New("disk full")}}
		close(g.open)
		q := NewQueue(g, QueueOptions{})
		for i, c := range []struct{ op, says string }{{"bad", ""}, {"next", "disk full"}, {"then", ""}} {
			err := q.Record(t.Context(), record(c.op))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%d: %v", i, err)
			}
			synctest.Wait()
		}
		for range 2 {
			if err := q.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 records were not kept; the first: ") || !strings.Contains(err.Error(), "disk full") {
				t.Errorf("Close: %v", err)
			}
		}
		if len(g.ops) != 3 {
			t.Errorf("got %v", g.ops)
		}
	})
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		q := NewQueue(g, QueueOptions{})
		for range 3 {
			if err := q.Record(t.Context(), record("run")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sandbox.CodeUnavailable) {
			t.Errorf("got %v", err)
		}
		if err := q.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "3 records were not kept") {
			t.Errorf("got %v", err)
		}
	})
}

func TestBestEffortTellsAndGoesOn(t *testing.T) {
	t.Parallel()
	var told []string
	b := BestEffort{
		Sink:   &gate{open: closed(), fail: map[string]error{"bad": errors.New("disk full")}},
		Failed: func(_ context.Context, r sandbox.Record, err error) { told = append(told, r.Op+": "+err.Error()) },
	}
	for _, op := range []string{"good", "bad"} {
		if err := b.Record(t.Context(), record(op)); err != nil {
			t.Error(err)
		}
	}
	if len(told) != 1 || told[0] != "bad: disk full" {
		t.Errorf("told %q", told)
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
