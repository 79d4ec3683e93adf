package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// recorded makes a Runtime and keeps its Records.
func recorded(t *testing.T) (*sandbox.Runtime, *kept) {
	t.Helper()
	b, _ := world(t)
	sink := &kept{}
	return sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{sink}}), sink
}

func TestCodeIsReadWhileItRuns(t *testing.T) {
	t.Parallel()
	rt, sink := recorded(t)
	sb, err := rt.Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	p, err := sb.StartCode(t.Context(), sandbox.Source{Language: "sh", Text: "echo a\necho b\nexit 3"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for text, err := range p.Text() {
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(text.Text)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 3 || out.String() != "a\nb\n" {
		t.Errorf("%q, %+v, %v", out.String(), exit, err)
	}
	if left, err := sb.Files().List(t.Context(), "/work"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, r := range sink.records {
		if r.Op == "start-code" || r.Op == "wait" {
			if len(r.CodeSHA256) != 64 || r.Program != "sh" {
				t.Errorf("%+v", r)
			}
		}
	}
	if r := sink.last(); r.Op != "list" {
		t.Errorf("the last record is of %s", r.Op)
	}
}

// A program that did not end by itself has no exit status, in a Record least
// of all.
func TestAnExitThatNobodyKnowsIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, sink := recorded(t)
		sb, err := rt.Create(t.Context(), sandbox.Spec{Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"hang"}}); err != context.DeadlineExceeded { //nolint:errorlint // unwrapped is what is promised
			t.Errorf("%v", err)
		}
		if r := sink.last(); r.Op != "run" || r.Exit != nil {
			t.Errorf("cut off: %s with the exit %+v", r.Op, r.Exit)
		}
		p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"hang"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		if exit, err := p.Wait(); exit.Code != -1 || !errors.Is(err, sandbox.CodeGone) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("closed: %+v, %v", exit, err)
		}
		if r := sink.last(); r.Op != "wait" || r.Exit != nil {
			t.Errorf("gone: %s with the exit %+v", r.Op, r.Exit)
		}
	})
}

func TestALoopOverOutputTellsOfATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, sink := recorded(t)
		sb, err := rt.Create(t.Context(), sandbox.Spec{Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"hang"}, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range p.Output() {
			last = err
		}
		if !errors.Is(last, sandbox.CodeTimeout) {
			t.Errorf("the loop ends with %v", last)
		}
		if r := sink.last(); r.Op != "wait" || r.Exit == nil || !r.Exit.TimedOut {
			t.Errorf("recorded: %s, %+v", r.Op, r.Exit)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestALifetimeThatEndedIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, _ := recorded(t)
		sb, err := rt.Create(t.Context(), sandbox.Spec{Lifetime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, err = sb.Run(t.Context(), sandbox.Cmd{Args: []string{"hang"}, Timeout: time.Hour})
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeGone || !strings.Contains(e.Error(), "lifetime ended at") || !strings.Contains(e.Hint, "Spec.Lifetime") {
			t.Errorf("%v", err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestASandboxIsExtendedUpToItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(123 * time.Millisecond) // no whole second
		rt, sink := recorded(t)
		sb, err := rt.Create(t.Context(), sandbox.Spec{Lifetime: time.Minute, MaxLifetime: 3 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if r := sink.last(); r.Image == "" || !r.Deadline.Equal(sb.Status().Deadline) || r.Resources.PIDs != 256 {
			t.Errorf("recorded: %+v", r)
		}
		time.Sleep(time.Millisecond)
		if err := sb.Extend(t.Context(), 3*time.Minute-time.Millisecond); err != nil {
			t.Error(err)
		}
		if r := sink.last(); r.Op != "extend" || !r.Deadline.Equal(sb.Status().Deadline) {
			t.Errorf("recorded: %+v", r)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		if r := sink.last(); !r.Deadline.IsZero() || r.Resources.PIDs != 0 || r.Image == "" {
			t.Errorf("recorded: %+v", r)
		}
	})
}
