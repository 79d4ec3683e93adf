package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Scope is the name under which spans are made.
const Scope = "github.com/sandboxio/terraform-provider-sandboxio/tracing"

// Sink makes a span of each Record. It never fails, and is safe for concurrent
// use. Flushing is the provider's: shut it down after the last sandbox.
type Sink struct{ tracer trace.Tracer }

var _ sandbox.Sink = (*Sink)(nil)

// New makes a Sink whose spans go to provider.
func New(provider trace.TracerProvider) *Sink { return &Sink{provider.Tracer(Scope)} }

// Record makes the span of r.
func (s *Sink) Record(ctx context.Context, r sandbox.Record) error {
	_, span := s.tracer.Start(ctx, name(r),
		trace.WithTimestamp(r.Time), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attributes(r)...))
	if r.Code != "" {
		span.SetStatus(codes.Error, string(r.Code))
	}
	span.End(trace.WithTimestamp(r.Time.Add(r.Duration)))
	return nil
}

// lifecycle are the operations on a sandbox rather than in one.
var lifecycle = map[string]bool{"create": true, "attach": true, "extend": true, "close": true, "sweep": true}

func name(r sandbox.Record) string {
	if lifecycle[r.Op] {
		return "sandbox " + r.Op
	}
	return "execute_tool " + r.Op
}

func attributes(r sandbox.Record) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("sandboxio.operation", r.Op),
		attribute.String("sandboxio.backend", r.Backend),
		attribute.String("sandboxio.isolation", r.Isolation.String()),
	}
	if !lifecycle[r.Op] {
		all = append(all, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", r.Op), attribute.String("gen_ai.tool.type", "function"))
	}
	for _, a := range []struct{ key, value string }{
		{"error.type", string(r.Code)},
		{"process.executable.name", r.Program},
		{"sandboxio.sandbox", r.Sandbox},
		{"sandboxio.owner", r.Owner},
		{"sandboxio.tenant", r.Tenant},
		{"sandboxio.template", r.Template},
		{"sandboxio.policy", r.Policy},
		{"sandboxio.decision", string(r.Decision)},
		{"sandboxio.unguarded", r.Unguarded},
		{"sandboxio.trust", r.Trust},
		{"sandboxio.code_sha256", r.CodeSHA256},
	} {
		if a.value != "" {
			all = append(all, attribute.String(a.key, a.value))
		}
	}
	if len(r.Findings) > 0 {
		all = append(all, attribute.StringSlice("sandboxio.findings", r.Findings))
	}
	if r.Refused > 0 {
		all = append(all, attribute.Int("sandboxio.refused", r.Refused))
	}
	if r.Args > 0 {
		all = append(all, attribute.Int("process.args_count", r.Args))
	}
	if e := r.Exit; e != nil {
		all = append(all, attribute.Int("process.exit.code", e.Code), attribute.Bool("sandboxio.timed_out", e.TimedOut),
			attribute.Int64("sandboxio.stdout_bytes", r.Stdout), attribute.Int64("sandboxio.stderr_bytes", r.Stderr))
		if e.Signal != "" {
			all = append(all, attribute.String("sandboxio.signal", e.Signal))
		}
		if e.OOM != nil {
			all = append(all, attribute.Bool("sandboxio.oom", *e.OOM))
		}
	}
	return all
}
