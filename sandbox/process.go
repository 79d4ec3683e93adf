package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The guest ends a command that runs too long. This much later we end it
// ourselves, should the guest not have answered.
const timeoutSlack = 2 * time.Second

// Process is one running program. Its methods may be called from several
// goroutines, Output from one.
type Process struct {
	s      *Sandbox
	p      driver.Process
	op     *operation
	ctx    context.Context // the caller's, bounded by the timeout
	caller context.Context
	cancel context.CancelFunc
	unhook func() bool
	killed chan error // the answer of the kill that the end of ctx caused

	once    sync.Once
	exit    *Exit
	err     error
	started time.Time

	stdout, stderr int64
}

// resolve checks a command before anything is done about it.
func (s *Sandbox) resolve(cmd Cmd) (driver.Cmd, error) {
	order, err := cmd.resolve(s.detached)
	if s.secrets != nil {
		err = driver.Join(err, cmd.declared(*s.secrets))
	}
	return order, err
}

func (s *Sandbox) start(ctx context.Context, cmd Cmd, op *operation) (*Process, error) {
	order, err := s.resolve(cmd)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, err := s.sb.Start(ctx, order)
	if err != nil {
		return nil, err
	}
	p := &Process{s: s, p: raw, op: op, caller: ctx, started: op.record.Time, killed: make(chan error, 1)}
	if order.Detached {
		p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
		p.unhook = func() bool { return true }
		return p, nil
	}
	p.ctx, p.cancel = context.WithTimeoutCause(ctx, order.Timeout+timeoutSlack, errTimeout)
	p.unhook = context.AfterFunc(p.ctx, func() { p.killed <- p.Kill() }) //nolint:contextcheck // a kill outlives the context that asks for it
	if cmd.Stdin != nil {
		go feed(raw.Stdin(), cmd.Stdin)
	}
	return p, nil
}

// feed ends when the reader does, or when the program no longer reads: the
// backend fails a Write once the process has ended.
func feed(w io.WriteCloser, r io.Reader) {
	_, err := io.Copy(w, r)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		_ = w.Close()
	}
}

// Output yields the program's output as it comes, until the program has ended
// and all was yielded. Leaving the loop early kills the program with all its
// descendants. An error is yielded last.
func (p *Process) Output() iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		done := false
		defer func() {
			if !done { // left by break, return or panic
				_ = p.Kill()
				_, _ = p.Wait()
			}
		}()
		for {
			c, err := p.recv()
			switch {
			case errors.Is(err, io.EOF):
				done = true
				return
			case err != nil:
				done = true
				yield(Chunk{}, p.op.name(p.because(err)))
				return
			case !yield(c, nil):
				return
			}
		}
	}
}

func (p *Process) recv() (Chunk, error) {
	c, err := p.p.Recv(p.ctx)
	if errors.Is(err, io.EOF) && p.ctx.Err() != nil {
		// What ended the output may be the kill that the end of ctx caused:
		// nobody is to take that for the program's own end.
		err = p.ctx.Err()
	}
	switch c.Stream {
	case Stdout:
		p.stdout += int64(len(c.Data))
	case Stderr:
		p.stderr += int64(len(c.Data))
	}
	return c, err
}

// Wait waits for the program's end, dropping output that nobody has read.
// Another exit status than 0 is no error. Code timeout: its Timeout passed.
func (p *Process) Wait() (Exit, error) {
	p.once.Do(func() {
		exit, err := p.finish(func(Chunk) {})
		op := p.s.begin("wait", Cmd{})
		op.redact = p.op.redact
		op.record.Program, op.record.Args = p.op.record.Program, p.op.record.Args
		op.record.Exit, op.record.Stdout, op.record.Stderr = &exit, p.stdout, p.stderr
		p.exit, p.err = &exit, op.end(p.caller, err, nil)
	})
	return *p.exit, p.err
}

// Kill ends the program with all its descendants. It is bounded by
// Options.Grace.
func (p *Process) Kill() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.caller), p.s.rt.opts.Grace)
	defer cancel()
	return p.op.name(p.p.Kill(ctx))
}

// finish reads all output into take and waits for the end.
func (p *Process) finish(take func(Chunk)) (Exit, error) {
	var err error
	for {
		var c Chunk
		if c, err = p.recv(); err != nil {
			break
		}
		take(c)
	}
	var exit Exit
	if errors.Is(err, io.EOF) {
		exit, err = p.p.Wait(p.ctx)
	}
	ended := !p.unhook() // the end of ctx has started the kill
	p.cancel()
	if err != nil && !ended { // the backend lost it: nothing of it may run on
		_ = p.Kill()
	}
	if ended {
		if kerr := <-p.killed; kerr != nil && !errors.Is(kerr, CodeGone) {
			err = driver.Join(p.because(err), p.s.leaked(kerr))
			return exit, err
		}
	}
	if err == nil && exit.TimedOut {
		err = &Error{Code: CodeTimeout, Err: errTimeout, Hint: "raise Cmd.Timeout"}
	}
	return exit, p.because(err)
}

// because tells the caller's end of context from the command's own timeout.
func (p *Process) because(err error) error {
	if err == nil {
		return nil
	}
	if cerr := p.caller.Err(); cerr != nil {
		return cerr
	}
	if context.Cause(p.ctx) == errTimeout { //nolint:errorlint // the very value that WithTimeoutCause was given
		return &Error{Code: CodeTimeout, Err: errTimeout, Hint: "raise Cmd.Timeout"}
	}
	return err
}

// collect runs the process to its end and keeps its output.
func (p *Process) collect(limit int64) (*Result, error) {
	if limit == 0 {
		limit = DefaultMaxOutput
	}
	var out, errout bytes.Buffer
	res := &Result{secrets: p.op.redact}
	exit, err := p.finish(func(c Chunk) {
		b := &out
		if c.Stream == Stderr {
			b = &errout
		}
		room := limit - int64(b.Len())
		if int64(len(c.Data)) > room {
			res.Truncated = true
			c.Data = c.Data[:room]
		}
		b.Write(c.Data)
	})
	p.exit = &exit
	res.Exit, res.Stdout, res.Stderr, res.Duration = exit, out.Bytes(), errout.Bytes(), time.Since(p.started)
	return res, err
}
