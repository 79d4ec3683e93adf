package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// DefaultQueueSize is how many Records a Queue holds when QueueOptions.Size is
// zero.
const DefaultQueueSize = 1024

// QueueOptions configure a Queue. The zero value holds 1024 Records.
type QueueOptions struct{ Size int }

// Queue is a [sandbox.Sink] that answers at once and hands Records, in order,
// to a slower one from a goroutine of its own. It trades a promise for time: an
// operation has happened before it is known whether its Record was kept. It
// drops none in silence, and never blocks:
//
//   - when it is full, Record fails with code exhausted;
//   - when the inner sink has failed, the next Record fails with that error
//     (and is queued all the same), and so does Close.
//
// It is safe for concurrent use. Whoever made it calls Close.
type Queue struct {
	inner  sandbox.Sink
	done   chan struct{}
	cancel context.CancelFunc

	mu     sync.Mutex
	items  chan queued
	closed bool
	lost   int   // Records that the inner sink did not keep
	first  error // the first of its failures
	fresh  error // the failures that no Record has told yet
}

type queued struct {
	ctx    context.Context //nolint:containedctx // the caller's values, a span among them, without its end
	record sandbox.Record
}

var _ sandbox.Sink = (*Queue)(nil)

// NewQueue starts a Queue in front of inner. A negative Size counts as zero.
func NewQueue(inner sandbox.Sink, opts QueueOptions) *Queue {
	if opts.Size <= 0 {
		opts.Size = DefaultQueueSize
	}
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{inner: inner, done: make(chan struct{}), cancel: cancel, items: make(chan queued, opts.Size)}
	go q.drain(ctx)
	return q
}

// Record queues r.
func (q *Queue) Record(ctx context.Context, r sandbox.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return unavailable(errors.New("the queue is closed"), "close the queue after the last sandbox")
	}
	var full error
	select {
	case q.items <- queued{context.WithoutCancel(ctx), r}:
	default:
		full = &sandbox.Error{Code: sandbox.CodeExhausted, Op: "audit", Err: fmt.Errorf("the queue is full with %d records", cap(q.items)), Hint: "repair the sink behind it, or raise QueueOptions.Size"}
	}
	err := errors.Join(q.fresh, full)
	q.fresh = nil
	return err
}

func (q *Queue) drain(ctx context.Context) {
	defer close(q.done)
	for it := range q.items {
		one, cancel := context.WithCancel(it.ctx)
		stop := context.AfterFunc(ctx, cancel)
		err := ctx.Err()
		if err == nil {
			err = q.inner.Record(one, it.record) //nolint:contextcheck // its values are the caller's, its end is the queue's
		}
		stop()
		cancel()
		if err != nil {
			q.fail(unavailable(fmt.Errorf("an earlier record, of %s at %s, was not kept: %w", it.record.Op, it.record.Time.UTC().Format("15:04:05.000"), err), "repair the sink"))
		}
	}
}

func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost++
	if q.first == nil {
		q.first = err
	}
	if q.fresh == nil { // one is enough to tell; all of them could be many
		q.fresh = err
	}
}

// Close takes no more Records and waits until the inner sink has all, or ctx
// ends: then it cancels what is under way and drops the rest. It fails if any
// Record was not kept in the Queue's life, and says how many. It does not close
// the inner sink. Closing again waits and answers again.
//
// An inner sink that goes on after its context has ended holds the Queue's
// goroutine; Close does not wait for it beyond ctx.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.items)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	q.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	if left := len(q.items); left > 0 || ctx.Err() != nil && !q.drained() {
		return unavailable(errors.Join(fmt.Errorf("%w with records left in the queue", ctx.Err()), q.first), "give Close more time")
	}
	if q.lost > 0 {
		return unavailable(fmt.Errorf("%d records were not kept; the first: %w", q.lost, q.first), "repair the sink")
	}
	return nil
}

func (q *Queue) drained() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}
