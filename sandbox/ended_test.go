package sandbox_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
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
