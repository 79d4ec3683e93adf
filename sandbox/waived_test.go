package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// asking keeps the name of the template that it was asked about.
type asking struct {
	guard
	name *string
}

func (a asking) Judge(ctx context.Context, req sandbox.Request) (sandbox.Verdict, error) {
	*a.name = req.Template
	return a.guard.Judge(ctx, req)
}

func TestWhatIsWaivedIsRecordedAndRefusesNothing(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	waived := sandbox.Finding{Rule: "SBX-RES-005", Effect: sandbox.Waived, Path: "resources.pids", Message: "too many", Waiver: &sandbox.Waiver{
		ID: "W-1", Owner: "team-build", Reason: "the build forks", Expires: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC), Effect: sandbox.Deny,
	}}
	bare := sandbox.Finding{Rule: "SBX-RES-003", Effect: sandbox.Waived} // of a Guard that does not say by whom
	name, s := "", &sink{}
	verdict := sandbox.Verdict{Decision: sandbox.Allow, Findings: []sandbox.Finding{waived, bare}}
	opts := sandbox.Options{Guard: asking{guard{v: verdict}, &name}, Sinks: []sandbox.Sink{s}}
	sb, err := sandbox.New(b, opts).Create(t.Context(), sandbox.Spec{Template: &sandbox.Template{Name: "python"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	if name != "python" {
		t.Errorf("the Guard was asked about %q", name)
	}
	want := `SBX-RES-005: too many; waived by "W-1" of team-build until 2026-12-31T00:00:00Z: the build forks`
	if w := s.records[0].Warnings; !slices.Contains(w, want) {
		t.Errorf("the record says %q", w)
	}

	// Nor is it among the reasons of a refusal.
	verdict.Decision = sandbox.Deny
	verdict.Findings = append(verdict.Findings, sandbox.Finding{Rule: "SBX-NET-002", Effect: sandbox.Deny, Path: "network", Message: "open", Remediation: "close it"})
	_, err = sandbox.New(b, sandbox.Options{Guard: guard{v: verdict}}).Create(t.Context(), sandbox.Spec{})
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || e.Field != "network" || e.Hint != "close it" || strings.Contains(err.Error(), "SBX-RES") {
		t.Errorf("got %v", err)
	}
}
