package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// box is one sandbox. Its world holds it until it has ended.
type box struct {
	world   *World
	id      string
	spec    driver.Spec
	created time.Time
	tree    *tree

	ctx    context.Context // ends with the sandbox
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup // every goroutine of every program
	gone   chan struct{}  // closed once nothing is left

	running atomic.Int64 // how many tasks there are

	mu       sync.Mutex
	state    driver.State
	deadline time.Time
	timer    *time.Timer
	programs map[*process]bool // that run
	denied   driver.Denials
}

var errEnded = errors.New("the sandbox has ended")

// end ends the sandbox with all that runs in it. It returns once nothing of it
// is left, and may be called any number of times.
func (b *box) end() {
	b.mu.Lock()
	first := b.state != driver.StateRemoving
	b.state = driver.StateRemoving
	b.timer.Stop()
	b.mu.Unlock()
	if !first {
		<-b.gone
		return
	}
	b.cancel(errEnded)
	b.tasks.Wait()
	b.world.forget(b.id)
	close(b.gone)
}

// expire ends the sandbox if its deadline has not been moved meanwhile.
func (b *box) expire() {
	b.mu.Lock()
	due := b.state == driver.StateRunning && !time.Now().Before(b.deadline)
	b.mu.Unlock()
	if due {
		b.end()
	}
}

func (b *box) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == driver.StateRunning {
		b.timer.Stop()
		b.state = driver.StatePaused
	}
}

// usable refuses what needs the inside of a sandbox that cannot answer.
func (b *box) usable(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == driver.StateRunning {
		return nil
	}
	if b.state == driver.StatePaused {
		return signed(&driver.Error{Code: driver.CodeUnavailable, Err: errors.New("the sandbox is paused"), Hint: "kill it"}, op, b.id)
	}
	return signed(&driver.Error{Code: driver.CodeGone, Err: errEnded}, op, b.id)
}

// note keeps account of what runs.
func (b *box) note(p *process, runs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.programs == nil {
		b.programs = map[*process]bool{}
	}
	if runs {
		b.programs[p] = true
	} else {
		delete(b.programs, p)
	}
}

// cmdlines are the arguments of what runs, a line each.
func (b *box) cmdlines() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var text strings.Builder
	for p := range b.programs {
		text.WriteString(strings.Join(p.cmd.Args, "\x00") + "\n")
	}
	return text.String()
}

func (b *box) native() map[string]string {
	return b.spec.NativeLabels(b.created, b.expires())
}

// expires is when the sandbox ends at the latest, however often it is extended.
func (b *box) expires() time.Time { return b.created.Add(b.spec.LongestLife()) }

// status is how a list shows the sandbox.
func (b *box) status() driver.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return driver.Status{
		ID: b.id, Name: fmt.Sprintf("sandboxio-%s-%d", b.spec.Token, b.deadline.Unix()), Backend: name, State: b.state, Image: b.spec.Image,
		Created: b.created, Deadline: b.deadline, Detached: b.spec.Detached, Facts: b.spec.Facts, Labels: maps.Clone(b.spec.Labels),
	}
}

// handle is the sandbox as its creator, or who attached to it, holds it.
func (b *box) handle(creator bool) *sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &sandbox{box: b, state: b.state, measured: time.Now(), creator: creator}
}

type sandbox struct {
	box      *box
	state    driver.State // as it was then
	measured time.Time
	creator  bool // it was had from Create
}

var (
	_ driver.Sandbox  = (*sandbox)(nil)
	_ driver.Extender = (*sandbox)(nil)
)

func (s *sandbox) Status() driver.Status {
	out := s.box.status()
	out.State = s.state
	out.Evidence = driver.Evidence{Source: "none", Detail: "kept in this process, isolated by nothing", Date: s.measured}
	return out
}

func (s *sandbox) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	return s.box.start(ctx, cmd)
}

func (s *sandbox) Files() driver.Files { return files{s.box} }

// Kill does not ask ctx: it takes no time, and half a kill is none.
func (s *sandbox) Kill(context.Context) error {
	s.box.end()
	return nil
}

// Extend moves the deadline, to within what was allowed at creation.
func (s *sandbox) Extend(ctx context.Context, deadline time.Time) error {
	b := s.box
	if err := b.usable(ctx, "extend"); err != nil {
		return err
	}
	now := time.Now()
	if !deadline.After(now) || deadline.After(b.expires()) {
		return signed(driver.Invalid("deadline", fmt.Sprintf("%v is not between now and %v", deadline, b.expires()), "create the sandbox with a larger MaxLifetime"), "extend", b.id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != driver.StateRunning {
		return signed(&driver.Error{Code: driver.CodeGone, Err: errEnded}, "extend", b.id)
	}
	b.deadline = deadline
	b.timer.Reset(deadline.Sub(now))
	return nil
}
