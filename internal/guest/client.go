package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options are a connection's.
type Options struct {
	Backend, Sandbox string // for errors
	Version          string // of this program, for the guest to know

	// Configure says that this connection is the creator's, or a claimer's:
	// Env becomes the sandbox's env, held in the guest's memory, and the
	// lifetime begins anew if Lifetime is positive. A sandbox is configured
	// at most once.
	Configure bool
	Env       map[string]string
	Lifetime  time.Duration

	// Over says whether the sandbox has certainly ended. It is asked every
	// second while the guest answers nothing: an engine may forget to end the
	// connection to what it has removed, and a paused guest is as silent. Nil:
	// the connection's own end is all that is waited for.
	Over func(ctx context.Context) bool

	patience time.Duration // silence, but for tests
}

// silence is after how long without an answer Over is asked, and how long it
// may take.
const silence = 3 * time.Second

// Hello is what the guest said of itself when the connection was made.
type Hello struct {
	Protocol int
	Version  string
	Boot     string // identifies this run of PID 1
	PID1UID  uint32 // uid of PID 1
	Owned    bool
	Deadline time.Time // the guest's clock
}

// Client is a connection to a guest. Its methods may be called at the same
// time.
type Client struct {
	opts  Options
	mux   *yamux.Session
	in    *guard       // what mux reads from
	box   *outbox      // what out writes to
	out   *wire.Joiner // what mux writes to
	hello Hello
	token atomic.Uint64
	grace time.Duration // cancelGrace

	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup // goroutines, all of which the connection's end ends
}

// task runs f, for Close to wait for; false after Close.
func (c *Client) task(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.tasks.Go(f)
	}
	return !c.closed
}

// Connect greets the guest on the other end of conn, which it then owns; on
// error it has closed it. When ctx ends, so does the attempt; afterwards ctx
// means nothing. Codes: gone (nobody answered), unsupported (another
// protocol), conflict (configured before).
func Connect(ctx context.Context, conn io.ReadWriteCloser, opts Options) (*Client, error) {
	c := &Client{opts: opts, grace: cancelGrace}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err := c.greet(ctx, conn)
	if !stop() {
		_ = conn.Close() // before we return, whoever else does it
		return nil, ctx.Err()
	}
	if err == nil {
		c.in = newGuard(conn)
		c.box = newOutbox(c.in)
		c.out = wire.Join(c.box)
		c.mux, err = yamux.Client(c.out, muxConfig())
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.task(c.box.run)
	c.task(c.live)
	return c, nil
}

func (c *Client) greet(ctx context.Context, conn io.ReadWriter) error {
	refuse := func(code driver.Code, err error, hint string) error {
		return &driver.Error{Code: code, Op: "connect", Backend: c.opts.Backend, Sandbox: c.opts.Sandbox, Err: err, Hint: hint}
	}
	host := wire.HostHello{Version: c.opts.Version, Configure: c.opts.Configure}
	if c.opts.Configure {
		host.Env, host.Lifetime = pairs(c.opts.Env), int64(c.opts.Lifetime)
	}
	if err := wire.WriteHello(conn, Protocol, &host); errors.Is(err, wire.ErrTooLarge) {
		return refuse(driver.CodeInvalid, errors.New("the sandbox's env is over 1 MiB"), "pass large data in a file")
	} else if err != nil {
		return refuse(driver.CodeGone, fmt.Errorf("the sandbox takes no connection: %w", err), "")
	}
	var reply wire.GuestHello
	switch protocol, err := wire.ReadHello(conn, &reply); {
	case errors.Is(err, wire.ErrMalformed):
		return refuse(driver.CodeInternal, errors.New("what answered is not a sandboxio guest"), "sandboxio setup docker")
	case err != nil:
		return refuse(driver.CodeGone, errors.New("the sandbox ended before it answered"), "")
	case protocol < Protocol:
		return refuse(driver.CodeUnsupported, fmt.Errorf("the guest speaks protocol %d, this program %d", protocol, Protocol),
			"run `sandboxio setup docker`, then create the sandbox anew")
	case protocol > Protocol:
		return refuse(driver.CodeUnsupported, fmt.Errorf("the guest speaks protocol %d, this program %d", protocol, Protocol),
			"use the sandboxio version that made this sandbox, or a newer one")
	case reply.Failure.Code != "":
		return c.fail(ctx, "connect", &reply.Failure)
	}
	c.hello = Hello{Protocol: Protocol, Version: clean(reply.Version), Boot: clean(reply.Boot),
		PID1UID: reply.PID1UID, Owned: reply.Owned, Deadline: time.Unix(0, reply.Deadline)}
	return nil
}

func muxConfig() *yamux.Config {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard // it would print what the guest sends
	cfg.MaxStreamWindowSize = muxWindow
	// A paused sandbox answers nothing for as long as it is paused, and is
	// not lost for that; callers bring a context.
	cfg.EnableKeepAlive = false
	cfg.StreamOpenTimeout = 0
	// How long a stream is remembered that the guest does not end.
	cfg.StreamCloseTimeout = 30 * time.Second
	cfg.ConnectionWriteTimeout = 30 * time.Second
	return cfg
}

// live gives the guest a sign of life every second until the connection ends.
// The guest gives a silent owner up; nobody here waits for its answers, but
// while there are none, Over is asked whether there will ever be one.
func (c *Client) live() {
	const unanswered = 8
	patience := cmp.Or(c.opts.patience, silence)
	under, asking := make(chan struct{}, unanswered), make(chan struct{}, 1)
	var heard atomic.Int64 // when the last answer came
	heard.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.Done():
			return
		case <-ticker.C:
		}
		select {
		case under <- struct{}{}:
			c.task(func() {
				if _, err := c.mux.Ping(); err == nil {
					heard.Store(time.Now().UnixNano())
				}
				<-under
			})
		default: // paused, it seems
		}
		if c.opts.Over == nil || time.Since(time.Unix(0, heard.Load())) < patience {
			continue
		}
		select {
		case asking <- struct{}{}:
			c.task(func() {
				ctx, cancel := context.WithTimeout(ctx, silence)
				defer cancel()
				if c.opts.Over(ctx) {
					_ = c.mux.Close()
				}
				<-asking
			})
		default:
		}
	}
}

// Hello is what the guest said of itself.
func (c *Client) Hello() Hello { return c.hello }

// Done is closed when the connection is lost or the guest has ended. From
// then on every call gives driver.CodeGone.
func (c *Client) Done() <-chan struct{} { return c.mux.CloseChan() }

// Attest lets a child on the workload's own path measure what it is held by.
func (c *Client) Attest(ctx context.Context) (Report, error) {
	var r Report
	err := c.op(ctx, "attest", wire.OpAttest, &wire.Empty{}, func(s io.Reader) error {
		if err := done(s); err != nil {
			return err
		}
		return wire.ReadReply(s, &r)
	})
	return r, err
}

// Extend moves the deadline at which PID 1 ends the sandbox, by its own clock.
// Code: invalid, when it has passed or is beyond Boot.Longest.
func (c *Client) Extend(ctx context.Context, deadline time.Time) error {
	var at int64 // UnixNano is defined for some centuries only
	switch latest := time.Unix(0, math.MaxInt64); {
	case deadline.After(latest):
		at = math.MaxInt64
	case deadline.After(time.Unix(0, 0)):
		at = deadline.UnixNano()
	}
	return c.op(ctx, "extend", wire.OpExtend, &wire.Extend{Deadline: at}, done)
}

// End kills everything in the sandbox and ends PID 1. It returns once the
// connection ended with it.
func (c *Client) End(ctx context.Context) error {
	err := c.op(ctx, "end", wire.OpEnd, &wire.Empty{}, func(io.Reader) error {
		select {
		case <-c.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if c.lost() {
		return nil
	}
	return err
}

// Close hangs up, relying on conn's Close to end its Read. An owned sandbox
// ends when its owner does so; what another connection started ends with it,
// unless it is detached. Nothing of the client runs on once Close returns.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.mux.Close()
	c.tasks.Wait()
	return err
}

// done reads the event that says an operation succeeded.
func done(s io.Reader) error {
	var e wire.Event
	switch err := wire.ReadReply(s, &e); {
	case err != nil:
		return err
	case e.Kind == wire.EventFailed:
		return &e.Failure
	case e.Kind != wire.EventDone:
		return wire.ErrMalformed
	}
	return nil
}

// op performs one operation on a stream of its own.
func (c *Client) op(ctx context.Context, name string, op wire.Op, m wire.Message, talk func(io.Reader) error) error {
	s, err := c.open(ctx, op, m)
	if err != nil {
		return c.fail(ctx, name, err)
	}
	defer s.Close()
	defer bind(ctx, s.SetDeadline)()
	return c.fail(ctx, name, talk(s))
}

// begin opens a stream, which waits for as long as the guest has accepted none
// of many before, and sends an operation's beginning until ctx ends.
func (c *Client) begin(ctx context.Context, op wire.Op, m wire.Message) (*stream, error) {
	defer c.out.Hold()()
	s, err := c.in.open(c.mux, c.box)
	if err != nil {
		return nil, err
	}
	defer bind(ctx, s.SetWriteDeadline)()
	if err := wire.WriteOp(s, op, m); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// open is begin, cut short by the end of ctx: whatever becomes of the stream
// then, it is closed.
func (c *Client) open(ctx context.Context, op wire.Op, m wire.Message) (*stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type opened struct {
		s   *stream
		err error
	}
	ch := make(chan opened)
	ok := c.task(func() {
		s, err := c.begin(ctx, op, m)
		select {
		case ch <- opened{s, err}:
		case <-ctx.Done():
			if err == nil {
				_ = s.Close()
			}
		}
	})
	if !ok {
		return nil, yamux.ErrSessionShutdown
	}
	select {
	case o := <-ch:
		return o.s, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var past = time.Unix(1, 0)

// bind makes the end of ctx interrupt what set sets a deadline for, until the
// returned function is called, after which it works again.
func bind(ctx context.Context, set func(time.Time) error) (release func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = set(past); close(fired) })
	return func() {
		if !stop() {
			<-fired
			_ = set(time.Time{})
		}
	}
}

// pairs orders a map, so that the same order is the same bytes.
func pairs(m map[string]string) [][2]string {
	var out [][2]string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, [2]string{k, m[k]})
	}
	return out
}
