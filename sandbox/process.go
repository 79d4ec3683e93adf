package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The guest ends a command that runs too long. This much later we end it
// ourselves, should the guest not have answered.
const timeoutSlack = 2 * time.Second

func slackened(timeout time.Duration) time.Duration {
	return min(timeout, math.MaxInt64-timeoutSlack) + timeoutSlack
}

var errRead = errors.New("the program's output was read or dropped before")

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
	after  func()     // cleans up once the program has ended; may be nil
	killed chan error // the answer of the kill that the end of ctx caused

	read    atomic.Bool // all output was yielded or dropped
	once    sync.Once
	exit    *Exit // nil as long as it is not known
	err     error
	started time.Time

	stdout, stderr atomic.Int64 // bytes that came
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
	p.ctx, p.cancel = context.WithTimeoutCause(ctx, slackened(order.Timeout), errTimeout)
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
// descendants. The loop waits for the program's end, as Wait does; the error
// that Wait gives, a timeout among them, is yielded last.
//
// A Chunk is what came at once: a line may be several, and several lines one.
// A program that buffers what it writes to a pipe, as Python does, sends it
// late: set PYTHONUNBUFFERED=1. Output can be had once; after it, and after
// Wait, a loop yields an error of code invalid.
func (p *Process) Output() iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if p.read.Load() {
			yield(Chunk{}, p.op.name(&Error{Code: CodeInvalid, Err: errRead, Hint: "range over Output once, before Wait"}))
			return
		}
		done := false
		defer func() {
			if !done { // left by break, return or panic
				_ = p.Kill()
				_, _ = p.Wait()
			}
		}()
		for {
			c, err := p.recv()
			if err == nil {
				if !yield(c, nil) {
					return
				}
				continue
			}
			done = true
			_, werr := p.Wait()
			if werr == nil && !errors.Is(err, io.EOF) {
				werr = p.op.name(p.because(err))
			}
			if werr != nil {
				yield(Chunk{}, werr)
			}
			return
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
		p.stdout.Add(int64(len(c.Data)))
	case Stderr:
		p.stderr.Add(int64(len(c.Data)))
	}
	return c, err
}

// Wait waits for the program's end, dropping output that nobody has read.
// Another exit status than 0 is no error. Beside an error the Exit has the
// Code -1, unless the program's own end is known, as after a timeout. Code
// timeout: its Timeout passed; gone: the sandbox ended.
func (p *Process) Wait() (Exit, error) {
	p.once.Do(func() {
		err := p.finish(func(Chunk) {})
		op := p.s.begin("wait", Cmd{})
		op.redact = p.op.redact
		op.record.Program, op.record.Args, op.record.CodeSHA256 = p.op.record.Program, p.op.record.Args, p.op.record.CodeSHA256
		op.record.Exit, op.record.Stdout, op.record.Stderr = p.exit, p.stdout.Load(), p.stderr.Load()
		p.err = op.end(p.caller, err, nil)
	})
	return p.ended(), p.err
}

// ended is the program's exit; one that nobody knows is no success.
func (p *Process) ended() Exit {
	if p.exit == nil {
		return Exit{Code: -1}
	}
	return *p.exit
}

// Kill ends the program with all its descendants. It is bounded by
// Options.Grace.
func (p *Process) Kill() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.caller), p.s.rt.opts.Grace)
	defer cancel()
	return p.op.name(p.p.Kill(ctx))
}

// finish reads all output into take and waits for the end. It sets exit if
// that is known.
func (p *Process) finish(take func(Chunk)) error {
	if p.after != nil {
		defer p.after()
	}
	var err error
	for {
		var c Chunk
		if c, err = p.recv(); err != nil {
			break
		}
		take(c)
	}
	p.read.Store(true)
	if errors.Is(err, io.EOF) {
		var exit Exit
		if exit, err = p.p.Wait(p.ctx); err == nil {
			p.exit = &exit
		}
	}
	ended := !p.unhook() // the end of ctx has started the kill
	p.cancel()
	if err != nil && !ended { // the backend lost it: nothing of it may run on
		_ = p.Kill()
	}
	if ended {
		if kerr := <-p.killed; kerr != nil && !errors.Is(kerr, CodeGone) {
			return driver.Join(p.because(err), p.s.leaked(kerr))
		}
	}
	if err == nil && p.exit.TimedOut {
		err = &Error{Code: CodeTimeout, Err: errTimeout, Hint: "raise Cmd.Timeout"}
	}
	return p.because(err)
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
	err := p.finish(func(c Chunk) {
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
	res.Exit, res.Stdout, res.Stderr, res.Duration = p.ended(), out.Bytes(), errout.Bytes(), time.Since(p.started)
	return res, err
}

// result is collect for an operation's Record.
func (p *Process) result(limit int64, op *operation) (*Result, error) {
	res, err := p.collect(limit)
	op.record.Exit, op.record.Stdout, op.record.Stderr = p.exit, p.stdout.Load(), p.stderr.Load()
	return res, err
}

// giveUp undoes a start that could not be recorded.
func (p *Process) giveUp() error {
	err := p.Kill()
	if p.after != nil {
		p.after()
	}
	return err
}
