package tracing_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
	"github.com/sandboxio/terraform-provider-sandboxio/tracing"
)

func provider(t *testing.T) (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(out))
	t.Cleanup(func() {
		if err := p.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return p, out
}

func values(all []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range all {
		out[string(a.Key)] = a.Value.AsInterface()
	}
	return out
}

func TestARecordBecomesASpan(t *testing.T) {
	t.Parallel()
	oom := true
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name   string
		record sandbox.Record
		span   string
		status codes.Code
		want   map[string]any
	}{
		{
			"a program that ran",
			sandbox.Record{Op: "run", Backend: "memory", Sandbox: "sb-1", Owner: "me", Program: "python3", Args: 3, Exit: &sandbox.Exit{Code: 3}, Stdout: 7, Isolation: sandbox.Container},
			"execute_tool run", codes.Unset,
			map[string]any{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "run", "gen_ai.tool.type": "function",
				"sandboxio.operation": "run", "sandboxio.backend": "memory", "sandboxio.isolation": "container", "sandboxio.sandbox": "sb-1", "sandboxio.owner": "me",
				"process.executable.name": "python3", "process.args_count": int64(3), "process.exit.code": int64(3),
				"sandboxio.stdout_bytes": int64(7), "sandboxio.stderr_bytes": int64(0), "sandboxio.timed_out": false,
			},
		},
		{
			"code that was killed",
			sandbox.Record{Op: "run-code", Backend: "memory", CodeSHA256: "ab", Refused: 4, Code: sandbox.CodeTimeout, Error: "canary", Exit: &sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: &oom, TimedOut: true}},
			"execute_tool run-code", codes.Error,
			map[string]any{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "run-code", "gen_ai.tool.type": "function", "error.type": "timeout",
				"sandboxio.operation": "run-code", "sandboxio.backend": "memory", "sandboxio.isolation": "unverified", "sandboxio.code_sha256": "ab", "sandboxio.refused": int64(4),
				"process.exit.code": int64(137), "sandboxio.signal": "SIGKILL", "sandboxio.oom": true, "sandboxio.timed_out": true,
				"sandboxio.stdout_bytes": int64(0), "sandboxio.stderr_bytes": int64(0),
			},
		},
		{
			"a sandbox that was refused",
			sandbox.Record{Op: "create", Backend: "memory", Tenant: "t", Policy: "sha256:p", Decision: sandbox.Deny, Findings: []string{"SBX-NET-002 x"}, Trust: "untrusted", Code: sandbox.CodeDenied, Error: "canary"},
			"sandbox create", codes.Error,
			map[string]any{
				"error.type": "denied", "sandboxio.operation": "create", "sandboxio.backend": "memory", "sandboxio.isolation": "unverified", "sandboxio.tenant": "t",
				"sandboxio.policy": "sha256:p", "sandboxio.decision": "deny", "sandboxio.findings": []string{"SBX-NET-002 x"}, "sandboxio.trust": "untrusted",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, out := provider(t)
			ctx, parent := p.Tracer("test").Start(t.Context(), "agent")
			c.record.Time, c.record.Duration = start, 1500*time.Millisecond
			if err := tracing.New(p).Record(ctx, c.record); err != nil {
				t.Fatal(err)
			}
			spans := out.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans", len(spans))
			}
			s := spans[0]
			if s.Name != c.span || s.SpanKind != trace.SpanKindInternal || s.Status.Code != c.status || s.Status.Description != string(c.record.Code) {
				t.Errorf("%s, %v, %+v", s.Name, s.SpanKind, s.Status)
			}
			if !s.StartTime.Equal(start) || s.EndTime.Sub(s.StartTime) != c.record.Duration {
				t.Errorf("from %v to %v", s.StartTime, s.EndTime)
			}
			if s.Parent.SpanID() != parent.SpanContext().SpanID() {
				t.Error("it is not a child of the caller's span")
			}
			if d := cmp.Diff(c.want, values(s.Attributes)); d != "" {
				t.Error(d)
			}
		})
	}
}

// The whole way: one span an operation, all of the caller's trace, also through
// a queue, and a canary in every place where a secret could be is in none.
func TestAnAgentsRunIsOneTraceWithoutSecrets(t *testing.T) {
	t.Parallel()
	const secret = "canary-5b7e-secret"
	p, out := provider(t)
	q := audit.NewQueue(tracing.New(p), audit.QueueOptions{})
	w := memory.NewWorld()
	b := memory.Open(memory.Options{World: w})
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	})
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{q}})
	ctx, parent := p.Tracer("test").Start(t.Context(), "agent")
	cmd := sandbox.Cmd{Args: []string{"echo", secret}, Env: map[string]string{"PLAIN": secret}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(secret)}}
	if _, err := rt.Run(ctx, sandbox.Spec{}, cmd); err != nil {
		t.Fatal(err)
	}
	cmd.Args[0] = "/opt/" + secret
	if _, err := rt.Run(ctx, sandbox.Spec{}, cmd); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = "/\x00" + secret
	if _, err := rt.Run(ctx, sandbox.Spec{}, cmd); driver.CodeOf(err) != driver.CodeInvalid {
		t.Fatal(err)
	}
	if err := q.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range out.GetSpans() {
		names = append(names, s.Name)
		if s.SpanContext.TraceID() != parent.SpanContext().TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		t.Run(s.Name+" has no command line in its attributes (M103)", func(t *testing.T) {
			if text, err := json.Marshal(s); err != nil || strings.Contains(string(text), secret) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
	one := []string{"sandbox create", "execute_tool run", "sandbox close"}
	if d := cmp.Diff(append(append(one, one...), one...), names); d != "" {
		t.Error(d)
	}
}
