package mutant

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

// lie says what a wrapped backend does otherwise; a nil field is honest.
type lie struct {
	info     func(driver.Info) driver.Info
	check    func(driver.Backend, driver.Spec) (driver.Plan, error)
	order    func(driver.Spec) driver.Spec // what is really ordered
	create   func(context.Context, driver.Backend, driver.Spec) (driver.Sandbox, error)
	status   func(driver.Spec, driver.Status) driver.Status
	attach   func(context.Context, driver.Backend, string) (driver.Sandbox, error)
	list     func(driver.Backend, context.Context, map[string]string) iter.Seq2[driver.Status, error]
	close    func(driver.Backend) error
	clock    func(driver.Clock) driver.Clock
	schedule func(driver.Scheduler) driver.Scheduler
	err      func(error) error
	cmd      func(driver.Spec, driver.Cmd) driver.Cmd
	start    func(context.Context, driver.Sandbox, driver.Cmd) (driver.Process, error)
	files    func(driver.Files) driver.Files
	kill     func(context.Context, driver.Sandbox) error
	extend   func(context.Context, driver.Sandbox, time.Time) error
	denied   func(driver.Denials) driver.Denials
	recv     func(context.Context, driver.Process) (driver.Chunk, error)
	stdin    func(io.WriteCloser) io.WriteCloser
	wait     func(context.Context, driver.Process) (driver.Exit, error)
	exit     func(driver.Exit) driver.Exit
	end      func(context.Context, driver.Process, driver.Cmd) error
}

// wrap makes a mutant's Lie of a constant one.
func wrap(l lie) func(driver.Backend, drivertest.Harness) driver.Backend {
	return func(b driver.Backend, _ drivertest.Harness) driver.Backend { return backend{b, l} }
}

// fresh makes a mutant's Lie of one that remembers: each backend that is
// opened has its own memory.
func fresh(f func(h drivertest.Harness) lie) func(driver.Backend, drivertest.Harness) driver.Backend {
	return func(b driver.Backend, h drivertest.Harness) driver.Backend { return backend{b, f(h)} }
}

// says tells whether a command is a probe, and with which arguments.
func says(h drivertest.Harness, cmd driver.Cmd, p drivertest.Probe) (args []string, ok bool) {
	head := h.Programs.Argv(p)
	if len(cmd.Args) < len(head) || !slices.Equal(cmd.Args[:len(head)], head) {
		return nil, false
	}
	return cmd.Args[len(head):], true
}

type backend struct {
	driver.Backend
	lie lie
}

func (b backend) Unwrap() driver.Backend { return b.Backend }

// As hands out what a lie has another of.
func (b backend) As(target any) bool {
	switch to := target.(type) {
	case *driver.Clock:
		if c, ok := driver.As[driver.Clock](b.Backend); ok && b.lie.clock != nil {
			*to = b.lie.clock(c)
			return true
		}
	case *driver.Scheduler:
		if s, ok := driver.As[driver.Scheduler](b.Backend); ok && b.lie.schedule != nil {
			*to = b.lie.schedule(s)
			return true
		}
	}
	return false
}

func (b backend) Info() driver.Info {
	info := b.Backend.Info()
	if b.lie.info != nil {
		info = b.lie.info(info)
	}
	return info
}

func (b backend) Check(spec driver.Spec) (driver.Plan, error) {
	if b.lie.check != nil {
		return b.lie.check(b.Backend, spec)
	}
	return b.Backend.Check(spec)
}

func (b backend) Create(ctx context.Context, spec driver.Spec) (driver.Sandbox, error) {
	ordered := spec
	if b.lie.order != nil {
		if _, err := b.Check(spec); err == nil { // what it refuses stays refused
			ordered = b.lie.order(spec)
		}
	}
	create := b.lie.create
	if create == nil {
		create = func(ctx context.Context, b driver.Backend, spec driver.Spec) (driver.Sandbox, error) {
			return b.Create(ctx, spec)
		}
	}
	s, err := create(ctx, b.Backend, ordered)
	if err != nil {
		return nil, b.lie.error(err)
	}
	return sandbox{s, b.lie, spec, spec.Lifetime != ordered.Lifetime}, nil
}

func (b backend) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	attach := b.lie.attach
	if attach == nil {
		attach = func(ctx context.Context, b driver.Backend, id string) (driver.Sandbox, error) {
			return b.Attach(ctx, id)
		}
	}
	s, err := attach(ctx, b.Backend, id)
	if err != nil {
		return nil, b.lie.error(err)
	}
	return sandbox{s, b.lie, driver.Spec{}, false}, nil
}

func (b backend) List(ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
	if b.lie.list != nil {
		return b.lie.list(b.Backend, ctx, labels)
	}
	return b.Backend.List(ctx, labels)
}

func (b backend) Close() error {
	if b.lie.close != nil {
		return b.lie.close(b.Backend)
	}
	return b.Backend.Close()
}

func (l lie) error(err error) error {
	if l.err != nil && err != nil {
		return l.err(err)
	}
	return err
}

type sandbox struct {
	driver.Sandbox
	lie   lie
	spec  driver.Spec
	moved bool // its deadline is not the one that was ordered
}

func (s sandbox) Unwrap() driver.Sandbox { return s.Sandbox }

// As hands out a lie's way to extend, and what it tells of refusals.
func (s sandbox) As(target any) bool {
	switch to := target.(type) {
	case *driver.Extender:
		if s.lie.extend != nil {
			*to = extender{s}
			return true
		}
	case *driver.Denier:
		if s.lie.denied != nil {
			*to = denier{s}
			return true
		}
	}
	return false
}

type denier struct{ s sandbox }

func (d denier) Denied(ctx context.Context) (driver.Denials, error) {
	honest, ok := driver.As[driver.Denier](d.s.Sandbox)
	if !ok {
		return driver.Denials{}, nil
	}
	told, err := honest.Denied(ctx)
	return d.s.lie.denied(told), err
}

type extender struct{ s sandbox }

func (e extender) Extend(ctx context.Context, to time.Time) error {
	return e.s.lie.extend(ctx, e.s.Sandbox, to)
}

func (s sandbox) Status() driver.Status {
	st := s.Sandbox.Status()
	if s.moved {
		st.Deadline = st.Created.Add(s.spec.Lifetime)
	}
	if s.lie.status != nil {
		st = s.lie.status(s.spec, st)
	}
	return st
}

func (s sandbox) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	if s.lie.cmd != nil {
		cmd = s.lie.cmd(s.spec, cmd)
	}
	start := s.lie.start
	if start == nil {
		start = func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
			return s.Start(ctx, cmd)
		}
	}
	p, err := start(ctx, s.Sandbox, cmd)
	if err != nil {
		return nil, s.lie.error(err)
	}
	return process{p, s.lie, cmd}, nil
}

func (s sandbox) Files() driver.Files {
	if s.lie.files != nil {
		return s.lie.files(s.Sandbox.Files())
	}
	return s.Sandbox.Files()
}

func (s sandbox) Kill(ctx context.Context) error {
	if s.lie.kill != nil {
		return s.lie.kill(ctx, s.Sandbox)
	}
	return s.Sandbox.Kill(ctx)
}

type process struct {
	driver.Process
	lie lie
	cmd driver.Cmd
}

func (p process) Unwrap() driver.Process { return p.Process }

func (p process) Recv(ctx context.Context) (driver.Chunk, error) {
	recv := p.lie.recv
	if recv == nil {
		recv = func(ctx context.Context, p driver.Process) (driver.Chunk, error) { return p.Recv(ctx) }
	}
	c, err := recv(ctx, p.Process)
	if err != nil && !errors.Is(err, io.EOF) {
		err = p.lie.error(err)
	}
	return c, err
}

func (p process) Stdin() io.WriteCloser {
	if p.lie.stdin != nil {
		return p.lie.stdin(p.Process.Stdin())
	}
	return p.Process.Stdin()
}

func (p process) Wait(ctx context.Context) (driver.Exit, error) {
	wait := p.lie.wait
	if wait == nil {
		wait = func(ctx context.Context, p driver.Process) (driver.Exit, error) { return p.Wait(ctx) }
	}
	exit, err := wait(ctx, p.Process)
	if err == nil && p.lie.exit != nil {
		exit = p.lie.exit(exit)
	}
	return exit, p.lie.error(err)
}

func (p process) Kill(ctx context.Context) error {
	if p.lie.end != nil {
		return p.lie.end(ctx, p.Process, p.cmd)
	}
	return p.Process.Kill(ctx)
}
