package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

const canary = "canary-5f1f0c2e9d"

// world is a test's own memory world, with the faults that can be switched on
// between the provider and it.
type world struct {
	t         *testing.T
	world     *memory.World
	provider  string
	backend   driver.Backend
	down      atomic.Bool   // the daemon does not answer
	failStart atomic.Bool   // commands do not start
	hang      atomic.Bool   // commands neither start nor fail
	late      atomic.Bool   // stamps tell a second more than was asked for
	starting  chan struct{} // told of each command that hangs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, starting: make(chan struct{}, 1)}
	w.world, w.provider = acctest.World(t)
	w.backend = memory.Open(memory.Options{World: w.world})
	return w
}

func (w *world) options() sandboxio.Options {
	return sandboxio.Options{Open: func(ctx context.Context, c estate.Config) (site.Estate, error) {
		e, err := estate.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		return faulty{e, w}, nil
	}}
}

func (w *world) run(steps ...resource.TestStep) {
	w.t.Helper()
	for i := range steps {
		if steps[i].Config != "" {
			steps[i].Config = w.provider + steps[i].Config
		}
	}
	acctest.Faulty(w.t, w.options(), resource.TestCase{Steps: steps})
}

// all gives what the world holds, past the provider.
func (w *world) all() []driver.Status {
	var out []driver.Status
	for st, err := range w.backend.List(context.Background(), nil) {
		if err != nil {
			w.t.Error(err)
			break
		}
		out = append(out, st)
	}
	return out
}

// only checks the one sandbox that there must be.
func (w *world) only(check func(driver.Status) error) resource.TestCheckFunc {
	return func(*terraform.State) error {
		all := w.all()
		if len(all) != 1 {
			return fmt.Errorf("the backend has %d sandboxes", len(all))
		}
		return check(all[0])
	}
}

func (w *world) killAll() {
	for _, st := range w.all() {
		sb, err := w.backend.Attach(context.Background(), st.ID)
		if err == nil {
			err = sb.Kill(context.Background())
		}
		if err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) freezeAll() {
	for _, st := range w.all() {
		w.world.Freeze(st.ID)
	}
}

// untilEmpty waits for deadlines to take everything.
func (w *world) untilEmpty() {
	for deadline := time.Now().Add(30 * time.Second); len(w.all()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Error("the sandboxes outlive their deadlines")
			return
		}
	}
}

// faulty is an estate whose backends have the world's faults.
type faulty struct {
	site.Estate
	w *world
}

func (f faulty) Backend(ctx context.Context, name string) (driver.Backend, error) {
	b, err := f.Estate.Backend(ctx, name)
	if err != nil {
		return nil, err
	}
	return faultyBackend{b, f.w}, nil
}

func (f faulty) Runtime(ctx context.Context, name string, opts sandbox.Options) (*sandbox.Runtime, error) {
	b, err := f.Backend(ctx, name)
	if err != nil {
		return nil, err
	}
	opts.Guard = f.Policy().Guard()
	return sandbox.New(b, opts), nil
}

type faultyBackend struct {
	driver.Backend
	w *world
}

func (b faultyBackend) Unwrap() driver.Backend { return b.Backend }

func (b faultyBackend) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	if b.w.down.Load() {
		return nil, &driver.Error{Code: driver.CodeUnavailable, Err: errors.New("nobody listens"), Hint: "start the daemon"}
	}
	sb, err := b.Backend.Attach(ctx, id)
	if err != nil || !b.w.late.Load() {
		return sb, err
	}
	return lateSandbox{sb}, nil
}

type lateSandbox struct{ driver.Sandbox }

func (s lateSandbox) Status() driver.Status {
	st := s.Sandbox.Status()
	st.Deadline = st.Deadline.Add(time.Second)
	return st
}

func (b faultyBackend) Create(ctx context.Context, spec driver.Spec) (driver.Sandbox, error) {
	sb, err := b.Backend.Create(ctx, spec)
	if err != nil || !b.w.failStart.Load() && !b.w.hang.Load() {
		return sb, err
	}
	return faultySandbox{sb, b.w}, nil
}

type faultySandbox struct {
	driver.Sandbox
	w *world
}

func (s faultySandbox) Start(ctx context.Context, _ driver.Cmd) (driver.Process, error) {
	if s.w.hang.Load() {
		s.w.starting <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, &driver.Error{Code: driver.CodeInternal, Err: errors.New("it does not start"), Hint: "look at the guest"}
}
