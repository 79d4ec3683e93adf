package sandbox_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// late is a backend whose processes tell the end of a context by the end of
// their output, which the kill has brought about.
type late struct{ driver.Backend }

func (b late) Create(ctx context.Context, spec driver.Spec) (driver.Sandbox, error) {
	s, err := b.Backend.Create(ctx, spec)
	return lateSandbox{s}, err
}

type lateSandbox struct{ driver.Sandbox }

func (s lateSandbox) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	p, err := s.Sandbox.Start(ctx, cmd)
	return lateProcess{p}, err
}

type lateProcess struct{ driver.Process }

func (p lateProcess) Recv(ctx context.Context) (driver.Chunk, error) {
	c, err := p.Process.Recv(context.WithoutCancel(ctx))
	if errors.Is(err, io.EOF) {
		<-ctx.Done() // the kill and the end of ctx, seen in this order
	}
	return c, err
}

func TestAKilledProgramIsNotTakenForOneThatEnded(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	s, err := sandbox.New(late{b}, sandbox.Options{Unguarded: "test"}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, run := range map[string]func(ctx context.Context) error{
		"run": func(ctx context.Context) error {
			_, err := s.Run(ctx, sandbox.Cmd{Args: []string{"hang"}})
			return err
		},
		"output": func(ctx context.Context) error {
			p, err := s.Start(ctx, sandbox.Cmd{Args: []string{"hang"}})
			if err != nil {
				return err
			}
			for _, e := range p.Output() {
				err = e
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := run(ctx); err != context.DeadlineExceeded { //nolint:errorlint // the very value is promised
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
}

func TestOutputCanBeHadOnce(t *testing.T) {
	for name, first := range map[string]func(*sandbox.Process){
		"after Wait":         func(p *sandbox.Process) { _, _ = p.Wait() },
		"after another loop": func(p *sandbox.Process) { drainAll(p) },
	} {
		t.Run(name, func(t *testing.T) {
			sb := quiet(t)
			p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"echo", "hello"}})
			if err != nil {
				t.Fatal(err)
			}
			first(p)
			pieces := 0
			for _, err = range p.Output() {
				pieces++
			}
			if pieces != 1 || !errors.Is(err, sandbox.CodeInvalid) || !strings.Contains(err.Error(), "before Wait") {
				t.Errorf("%d pieces, %v", pieces, err)
			}
			if exit, err := p.Wait(); exit.Code != 0 || err != nil {
				t.Error(exit, err)
			}
		})
	}
}

// quiet is a sandbox of the memory backend, closed with the test.
func quiet(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	rt := sandbox.New(memory.Open(memory.Options{}), sandbox.Options{Unguarded: "a test"})
	sb, err := rt.Create(t.Context(), sandbox.Spec{Image: "any", Trust: sandbox.Trusted("a test")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

func drainAll(p *sandbox.Process) {
	for _, err := range p.Output() {
		_ = err
	}
}

func TestASecretThatCannotBeToldFromOtherTextIsRefused(t *testing.T) {
	sb := quiet(t)
	for value, refused := range map[string]bool{"": false, "a": true, "ab7": true, "ab7c": false} {
		_, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{"PIN": sandbox.NewSecret(value)}})
		e, _ := errors.AsType[*sandbox.Error](err)
		if got := e != nil && e.Code == sandbox.CodeInvalid && e.Field == `secrets["PIN"]` && e.Hint != ""; got != refused {
			t.Errorf("%q: %v", value, err)
		}
	}
}
