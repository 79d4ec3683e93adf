package audit

import (
	"context"
	"log/slog"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// BestEffort is a [sandbox.Sink] whose failures never reach the operation: what
// could not be recorded has happened all the same. Use it for what is nice to
// have, a trace or a metric, never for the audit file.
//
// It waits for Sink as long as Sink takes; put a [Queue] behind it to wait for
// nothing.
type BestEffort struct {
	Sink sandbox.Sink
	// Failed is told of each Record that was not kept. It is called before the
	// operation returns. nil warns [slog.Default].
	Failed func(ctx context.Context, r sandbox.Record, err error)
}

var _ sandbox.Sink = BestEffort{}

// Record hands r to the sink and answers nil.
func (b BestEffort) Record(ctx context.Context, r sandbox.Record) error {
	err := b.Sink.Record(ctx, r)
	switch {
	case err == nil:
	case b.Failed != nil:
		b.Failed(ctx, r, err)
	default:
		slog.WarnContext(ctx, "a sandbox operation was not recorded", "op", r.Op, "backend", r.Backend, "sandbox", r.Sandbox, "error", err)
	}
	return nil
}
