package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Sandbox is one place where programs run. It is safe for concurrent use.
// Whoever created it calls Close.
type Sandbox struct {
	rt       *Runtime
	sb       driver.Sandbox
	id       string
	detached bool
	fixed    bool // created without room for Extend
	plan     driver.Plan
	base     Record    // what every Record of it says
	known    *known    // the secrets that its commands were given
	secrets  *[]string // names that the template declares; nil without one, and for an attached sandbox

	interpreters interpreters // what RunCode has found
	denials      denials      // those that Records have told

	close    sync.Once
	closing  atomic.Bool
	closeErr error
}

// ID is what Attach takes.
func (s *Sandbox) ID() string { return s.id }

// Status is what is known of the sandbox, without asking anybody. The measured
// isolation of an attached one is known from the first operation on.
func (s *Sandbox) Status() Status { return s.sb.Status() }

// Plan is how each control is enforced. It is zero for an attached sandbox.
func (s *Sandbox) Plan() driver.Plan { return s.plan }

// Warnings are what the operator should know of this sandbox: those of the
// plan, and what the Guard warned of.
func (s *Sandbox) Warnings() []string { return slices.Clone(s.base.Warnings) }

// Run runs cmd to its end and returns its output. Another exit status than 0
// is a Result, not an error. When ctx ends, nothing of the program survives
// and the error is ctx's. Code timeout: the command's own Timeout passed; the
// Result holds what it wrote until then, and is nil with every other error.
// Code gone: the sandbox ended, at its deadline or before.
func (s *Sandbox) Run(ctx context.Context, cmd Cmd) (*Result, error) {
	op := s.begin("run", cmd)
	if cmd.Detached {
		return nil, op.end(ctx, driver.Invalid("detached", "Run waits for the program", "use Start for a detached process"), nil)
	}
	var res *Result
	p, err := s.start(ctx, cmd, op)
	if err == nil {
		res, err = p.result(cmd.MaxOutput, op)
	}
	return outcome(res, op.end(ctx, err, nil))
}

// outcome is what Run and RunCode return: what a program wrote until its
// timeout is there beside the error.
func outcome(res *Result, err error) (*Result, error) {
	if err != nil && !errors.Is(err, CodeTimeout) {
		return nil, err
	}
	return res, err
}

// Start starts cmd. When ctx ends, the process is killed with all its
// descendants, unless cmd is Detached. A program that does not exist is a
// Process that exits with 127, one that may not be executed with 126.
func (s *Sandbox) Start(ctx context.Context, cmd Cmd) (*Process, error) {
	op := s.begin("start", cmd)
	p, err := s.start(ctx, cmd, op)
	var undo func() error
	if err == nil {
		undo = p.giveUp
	}
	if err := op.end(ctx, err, undo); err != nil {
		return nil, err
	}
	return p, nil
}

// Files reaches the sandbox's files.
func (s *Sandbox) Files() *Files { return &Files{s} }

// Close destroys the sandbox with all its processes, also one that another
// process made. To let go of a Detached sandbox, or of one that was joined by
// Attach, do not call it: close the backend, or just return. It takes no context: it
// survives the caller's cancellation and is bounded by Options.Grace. Closing
// again gives the same answer. Code leaked: it may still be there; the error
// names it and the command that removes it.
func (s *Sandbox) Close() error { return s.closeFor(context.Background()) }

// closeFor is Close with the values of ctx, a span among them, for the sinks.
func (s *Sandbox) closeFor(ctx context.Context) error {
	s.closing.Store(true)
	s.close.Do(func() {
		op := s.begin("close", Cmd{})
		s.closeErr = op.end(ctx, s.destroy(), nil)
	})
	return s.closeErr
}

// destroy kills the sandbox within the grace and says so if it could not.
func (s *Sandbox) destroy() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.rt.opts.Grace)
	defer cancel()
	err := s.sb.Kill(ctx)
	if err == nil || errors.Is(err, CodeLeaked) {
		return err
	}
	if CodeOf(err) == "" {
		err = fmt.Errorf("teardown did not end within %v", s.rt.opts.Grace)
	}
	st := s.sb.Status()
	return &Error{
		Code: CodeLeaked, Backend: s.rt.info.Name, Sandbox: st.ID,
		Err: fmt.Errorf("%w (name %s, labels %s)", err, st.Name, labelled(st)),
		Hint: fmt.Sprintf("it ends by itself at %s; sandboxio reap --backend %s:// --kill removes it then",
			st.Deadline.UTC().Format("2006-01-02T15:04:05Z"), s.rt.info.Name),
	}
}

// labelled says how a sandbox is found at its backend: its facts' labels, and
// the names of the caller's own.
func labelled(st driver.Status) string {
	native := st.Facts.Labels(driver.RoleSandbox, st.Created, st.Deadline)
	var all []string
	for _, k := range slices.Sorted(maps.Keys(native)) {
		if k != driver.LabelCreated && k != driver.LabelMaxExpires {
			all = append(all, k+"="+native[k])
		}
	}
	return strings.Join(append(all, slices.Sorted(maps.Keys(st.Labels))...), " ")
}

// tellEnd adds to an error that says the sandbox is gone why it is, as far as
// that is known here.
func (s *Sandbox) tellEnd(e *Error) {
	why, fix := "", ""
	switch deadline := s.sb.Status().Deadline; {
	case s.closing.Load():
		why = "the sandbox was closed"
	case !deadline.IsZero() && !time.Now().Before(deadline):
		why = "its lifetime ended at " + deadline.UTC().Format(time.RFC3339)
		fix = "set a longer Spec.Lifetime, or Spec.MaxLifetime and Extend it in time"
	default:
		return
	}
	if e.Err == nil {
		e.Err = errors.New(why)
	} else {
		e.Err = fmt.Errorf("%w; %s", e.Err, why)
	}
	if e.Hint == "" {
		e.Hint = fix
	}
}

// leaked is a program that may run on, since its kill failed.
func (s *Sandbox) leaked(err error) error {
	return &Error{Code: CodeLeaked, Sandbox: s.id, Err: err, Hint: "close the sandbox; that ends everything in it"}
}

func (s *Sandbox) begin(op string, cmd Cmd) *operation {
	o := s.rt.begin(op)
	r := s.base
	r.Time, r.Op, r.Warnings, r.Findings, r.Deadline, r.Resources = o.record.Time, op, nil, nil, time.Time{}, Resources{}
	o.record, o.of = r, s
	o.redact = s.known.add(cmd.Secrets)
	cmd.describe(&o.record, o.redact)
	return o
}
