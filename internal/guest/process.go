package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// cancelGrace is how long a cancelled Start waits to hear that nothing is left.
const cancelGrace = 5 * time.Second

// Start starts a program, as driver.Sandbox's Start says. What a program leaves
// running behind lives on, its output dropped, until the program is killed or
// the connection ends; a Detached one and what it leaves outlive that too.
// Codes: invalid (arguments over the kernel's limit), not-found or denied
// (Field "dir": the directory), exhausted (no more processes), unsupported
// (Detached in an owned sandbox).
func (c *Client) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	order := &wire.Exec{
		Token: c.token.Add(1), Args: cmd.Args, Env: pairs(cmd.Env), Dir: cmd.Dir,
		Stdin: cmd.Stdin, Timeout: int64(cmd.Timeout), Detached: cmd.Detached,
	}
	secrets := make(map[string]string, len(cmd.Secrets))
	for k, v := range cmd.Secrets {
		secrets[k] = v.Reveal()
	}
	order.Secrets = pairs(secrets)

	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var given atomic.Bool // the order, or the will to give it
	waits, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	ch := c.give(waits, order, &given)
	var g giving
	select {
	case g = <-ch:
	case <-ctx.Done():
		if given.CompareAndSwap(false, true) {
			return nil, ctx.Err() // it never will be
		}
		// The program may run, whether or not ctx has ended.
		select {
		case g = <-ch:
		case <-time.After(c.grace):
			c.task(func() { (<-ch).close() })
			return nil, c.unconfirmed(ctx)
		}
	}
	if g.err != nil {
		return nil, c.fail(ctx, "start", g.err)
	}
	p := &process{
		c: c, ctrl: g.ctrl, data: g.data, frames: wire.NewFrames(g.data), reading: make(chan struct{}, 1),
		started: make(chan struct{}), exited: make(chan struct{}), noStdin: make(chan struct{}), over: make(chan struct{}),
	}
	p.in = &stdin{p: p}
	if !cmd.Stdin {
		p.stdinClosed()
	}
	if !c.task(p.watch) {
		g.close()
		return nil, c.fail(ctx, "start", yamux.ErrSessionShutdown)
	}
	select {
	case <-p.started:
		return p, nil
	case <-p.over: // it never started
		select {
		case <-p.started:
			return p, nil
		default:
		}
		_ = p.data.Close()
		return nil, c.fail(ctx, "start", p.err)
	case <-ctx.Done():
	}
	// Our half of the control stream ending is the order to kill; the
	// guest's half ending says that it is done.
	_ = p.ctrl.CloseWrite()
	_ = p.data.Close()
	select {
	case <-p.over:
		return nil, ctx.Err()
	case <-time.After(c.grace):
		return nil, c.unconfirmed(ctx)
	}
}

// giving is what becomes of an order: its two streams, or why there are none.
type giving struct {
	data, ctrl *stream
	err        error
}

func (g giving) close() {
	if g.err == nil {
		_ = g.ctrl.Close()
		_ = g.data.Close()
	}
}

// give opens a program's two streams and sends its order, in one piece, unless
// given was set by somebody else before, or ctx ends.
func (c *Client) give(ctx context.Context, order *wire.Exec, given *atomic.Bool) <-chan giving {
	ch := make(chan giving, 1)
	ok := c.task(func() {
		defer c.out.Hold()()
		data, err := c.begin(ctx, wire.OpData, &wire.Data{Token: order.Token})
		if err != nil {
			ch <- giving{err: err}
			return
		}
		if !given.CompareAndSwap(false, true) {
			_ = data.Close()
			return
		}
		ctrl, err := c.begin(ctx, wire.OpExec, order)
		if err != nil {
			_ = data.Close()
		}
		ch <- giving{data, ctrl, err}
	})
	if !ok {
		ch <- giving{err: yamux.ErrSessionShutdown}
	}
	return ch
}

// unconfirmed is a cancelled start of which the guest did not say, in time,
// that nothing is left.
func (c *Client) unconfirmed(ctx context.Context) error {
	return errors.Join(ctx.Err(), &driver.Error{
		Code: driver.CodeLeaked, Op: "start", Backend: c.opts.Backend, Sandbox: c.opts.Sandbox,
		Err: errors.New("the guest did not confirm that the cancelled program is gone"), Hint: "destroy the sandbox",
	})
}

type process struct {
	c          *Client
	id         uint64
	ctrl, data *stream
	frames     *wire.Frames
	reading    chan struct{} // held by whoever reads frames
	in         *stdin

	started, exited, noStdin, over chan struct{}
	once                           sync.Once // closes noStdin

	exit driver.Exit // after exited
	err  error       // after over, if not exited
}

var _ driver.Process = (*process)(nil)

// watch reads what the guest says of the program, until it has said all.
func (p *process) watch() {
	defer close(p.over)
	defer p.stdinClosed()
	defer p.ctrl.Close()
	started := false
	for {
		var e wire.Event
		if p.err = wire.ReadReply(p.ctrl, &e); p.err != nil {
			return
		}
		switch {
		case e.Kind == wire.EventFailed && !started:
			p.err = &e.Failure
			return
		case e.Kind == wire.EventStarted && !started:
			started, p.id = true, e.ID
			close(p.started)
		case e.Kind == wire.EventStdinClosed && started:
			p.stdinClosed()
		case e.Kind == wire.EventExited && started:
			p.exit = exitOf(e.Exit)
			close(p.exited)
			return
		default:
			p.err = wire.ErrMalformed
			return
		}
	}
}

func exitOf(e wire.Exit) driver.Exit {
	out := driver.Exit{Code: int(e.Code), TimedOut: e.TimedOut}
	if e.Signal != 0 {
		out.Code, out.Signal = 128+int(e.Signal), signalName(int(e.Signal))
	}
	if e.OOM == wire.OOMNo || e.OOM == wire.OOMYes {
		oom := e.OOM == wire.OOMYes
		out.OOM = &oom
	}
	return out
}

// Recv returns the next piece of output.
func (p *process) Recv(ctx context.Context) (driver.Chunk, error) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return driver.Chunk{}, ctx.Err()
	}
	defer bind(ctx, p.data.SetReadDeadline)()
	for {
		tag, data, err := p.frames.Next()
		switch {
		case len(data) > 0 && tag == wire.TagStdout:
			return driver.Chunk{Stream: driver.Stdout, Data: data}, nil
		case len(data) > 0 && tag == wire.TagStderr:
			return driver.Chunk{Stream: driver.Stderr, Data: data}, nil
		case errors.Is(err, io.EOF):
			_ = p.data.Close()
			return driver.Chunk{}, io.EOF
		case err != nil:
			return driver.Chunk{}, p.c.fail(ctx, "output", err)
		}
	}
}

// Wait returns how the program ended.
func (p *process) Wait(ctx context.Context) (driver.Exit, error) {
	select {
	case <-p.exited:
		return p.exit, nil
	default:
	}
	select {
	case <-p.exited:
		return p.exit, nil
	case <-p.over:
		select {
		case <-p.exited:
			return p.exit, nil
		default: // the outcome is unknown, and never 0
			return driver.Exit{}, p.c.fail(ctx, "wait", p.err)
		}
	case <-ctx.Done():
		return driver.Exit{}, ctx.Err()
	}
}

// Kill ends the program with all its descendants.
func (p *process) Kill(ctx context.Context) error {
	return p.c.op(ctx, "kill", wire.OpKill, &wire.Kill{ID: p.id}, done)
}

// Stdin feeds the program.
func (p *process) Stdin() io.WriteCloser { return p.in }

// stdinClosed notes that nobody reads stdin any more, and frees a writer that
// waits for it.
func (p *process) stdinClosed() {
	p.once.Do(func() {
		close(p.noStdin)
		_ = p.data.SetWriteDeadline(past)
	})
}

type stdin struct {
	p      *process
	mu     sync.Mutex
	closed bool
}

func (w *stdin) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, fmt.Errorf("stdin: %w", io.ErrClosedPipe)
	}
	select {
	case <-w.p.noStdin:
		return 0, w.broken(nil)
	default:
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := wire.WriteFrames(w.p.data, wire.TagStdout, b)
	if err != nil {
		return n, w.broken(err)
	}
	return n, nil
}

// broken tells a program that reads no more from a connection that is lost.
func (w *stdin) broken(err error) error {
	if w.p.c.lost() {
		return w.p.c.fail(context.Background(), "stdin", errors.New("lost"))
	}
	select {
	case <-w.p.noStdin:
		return syscall.EPIPE
	default:
		return w.p.c.fail(context.Background(), "stdin", err)
	}
}

func (w *stdin) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	select {
	case <-w.p.noStdin:
		return nil
	default:
	}
	if _, err := wire.WriteFrames(w.p.data, wire.TagEnd, nil); err != nil {
		if err = w.broken(err); errors.Is(err, syscall.EPIPE) {
			return nil
		}
		return err
	}
	return nil
}
