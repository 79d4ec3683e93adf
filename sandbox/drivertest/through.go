package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// runtime gives the backend as programs use it, through package sandbox.
func (t *trial) runtime(sinks ...sandbox.Sink) *sandbox.Runtime {
	return sandbox.New(t.b, sandbox.Options{
		Unguarded: "a check of drivertest", Sinks: sinks, Grace: soon, Owner: cmp.Or(t.h.Owner, "drivertest"),
	})
}

// wish is an order in the words of package sandbox, and its label's value.
func (t *trial) wish() (spec sandbox.Spec, token string) {
	o := t.spec()
	return sandbox.Spec{
		Image: o.Image, Profile: o.Profile, Lifetime: o.Lifetime, Resources: o.Resources, Labels: o.Labels,
		Trust: sandbox.Trusted("probes of drivertest"),
	}, o.Token
}

// order says a probe as a command of package sandbox.
func (t *trial) order(p Probe, args ...string) sandbox.Cmd {
	return sandbox.Cmd{Args: t.h.Programs.Argv(p, args...), Timeout: time.Minute}
}

// through makes a check of one sandbox as package sandbox drives it. What goes
// on in it can be looked at past the package, in inner.
func through(f func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error, sinks ...func() sandbox.Sink) checkFunc {
	return with(func(t *trial) error {
		var all []sandbox.Sink
		for _, s := range sinks {
			all = append(all, s())
		}
		spec, _ := t.wish()
		s, err := t.runtime(all...).Create(t, spec)
		if err != nil {
			return err
		}
		t.finally(func(context.Context) error { return s.Close() })
		inner, ok := sandbox.As[driver.Sandbox](s)
		if !ok {
			return errors.New("the sandbox has none of the driver's in it")
		}
		return f(t, s, inner)
	})
}

// journal keeps Records, or refuses those of one operation.
type journal struct {
	refuse  string
	mu      sync.Mutex
	records []sandbox.Record
}

var errJournal = errors.New("the journal is full")

func (j *journal) Record(_ context.Context, r sandbox.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Op == j.refuse {
		return errJournal
	}
	j.records = append(j.records, r)
	return nil
}

// of gives the Records of one operation.
func (j *journal) of(op string) []sandbox.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []sandbox.Record
	for _, r := range j.records {
		if r.Op == op {
			out = append(out, r)
		}
	}
	return out
}

// daemon starts a program with a descendant that left it, and waits until
// that beats.
func (t *trial) daemon(ctx context.Context, s *sandbox.Sandbox, file string) (*sandbox.Process, error) {
	p, err := s.Start(ctx, t.order(Daemon, file))
	if err != nil {
		return nil, err
	}
	inner, ok := sandbox.As[driver.Sandbox](s)
	if !ok {
		return nil, errors.New("the sandbox has none of the driver's in it")
	}
	return p, t.beats(inner, file) //nolint:contextcheck // a trial is a context, and the program's own may end first
}

// truly fails unless err is the context's error and nothing else, as package
// sandbox hands it over.
func truly(what string, err, want error) error {
	if err != want { //nolint:errorlint // the very value is promised
		return fmt.Errorf("%s: %v (code %q), want %v itself", what, err, driver.CodeOf(err), want)
	}
	return nil
}
