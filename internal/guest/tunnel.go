package guest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

const (
	// ProxyPort of 127.0.0.1 inside is where programs connect to, after
	// [Client.Listen].
	ProxyPort = wire.ProxyPort
	// MaxTunnels is how many of their connections there are at a time.
	MaxTunnels = wire.MaxTunnels
)

const (
	// waiting streams are there before a program connects, so that its
	// connection need not wait for one.
	waiting = 4

	// newTunnels may come in a second once MaxTunnels came at once: a program
	// that only connects and hangs up keeps the host's processor no busier.
	newTunnels = 500
)

// Conn is the connection of a program inside. Its addresses say nothing.
type Conn interface {
	net.Conn
	CloseWrite() error // the host has said all; the program may go on for half a minute
}

// Listen lets programs in the sandbox connect to ProxyPort, and hands each
// connection to serve, in a goroutine of its own, with a context that ends
// when the client does. What is served is closed when serve returns; Close
// waits for all of it. That a program's connection is gone is told to who reads;
// writing fails from then on. The guest reads nothing of what it carries, and
// opens no stream: the host keeps some waiting for it.
//
// It works once, and on the creator's connection only. Codes: conflict,
// unsupported.
func (c *Client) Listen(ctx context.Context, serve func(ctx context.Context, conn Conn)) error {
	if err := c.op(ctx, "listen", wire.OpListen, &wire.Empty{}, done); err != nil {
		return err
	}
	c.task(func() { c.tunnels(serve) }) //nolint:contextcheck // ctx is the order's, and what is served outlives it
	return nil
}

// tunnels keeps streams waiting until the connection ends, or the guest breaks
// the protocol: then no program gets out any more.
func (c *Client) tunnels(serve func(ctx context.Context, conn Conn)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.task(func() { <-c.Done(); cancel() }) {
		return
	}
	slots, idle, broken := make(chan struct{}, MaxTunnels), make(chan struct{}, waiting), make(chan struct{}, 1)
	pace := pacer{rate: newTunnels, size: MaxTunnels}
	enter := func(ch chan struct{}) bool {
		select {
		case ch <- struct{}{}:
			return true
		case <-broken:
		case <-c.Done():
		}
		return false
	}
	for enter(slots) && enter(idle) && pace.wait(ctx) {
		ok := c.task(func() {
			defer func() { <-slots }()
			t, err := c.tunnel(ctx)
			<-idle
			if err != nil {
				select {
				case broken <- struct{}{}:
				default:
				}
				return
			}
			defer t.Close()
			serve(ctx, t)
		})
		if !ok {
			return
		}
	}
}

// tunnel waits for a program's connection.
func (c *Client) tunnel(ctx context.Context) (*tunnel, error) {
	s, err := c.open(ctx, wire.OpTunnel, &wire.Empty{})
	if err != nil {
		return nil, err
	}
	release := bind(ctx, s.SetDeadline)
	var e wire.Event
	err = wire.ReadReply(s, &e)
	release()
	if err == nil && e.Kind != wire.EventStarted {
		err = wire.ErrMalformed
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return &tunnel{c: c, s: s}, nil
}

// pacer lets through rate a second, and size at once.
type pacer struct {
	rate, size int
	spent      float64
	last       time.Time
}

func (p *pacer) wait(ctx context.Context) bool {
	now := time.Now()
	p.spent = max(0, p.spent-now.Sub(p.last).Seconds()*float64(p.rate)) + 1
	p.last = now
	if over := p.spent - float64(p.size); over > 0 {
		t := time.NewTimer(time.Duration(over * float64(time.Second) / float64(p.rate)))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// tunnel is a program's connection as the host has it. Whatever the guest
// says that is no frame of a tunnel's ends it.
type tunnel struct {
	c *Client
	s *stream

	read sync.Mutex // held by Read
	head [tunnelHead]byte
	have int // bytes of head
	left int // bytes of the frame's content
	end  error

	mu    sync.Mutex
	timer *time.Timer // cuts writing at the deadline
}

const tunnelHead = 5

var (
	_ net.Conn                        = (*tunnel)(nil)
	_ interface{ CloseWrite() error } = (*tunnel)(nil)
	_ net.Addr                        = inside{}
)

var errGone = errors.New("the program's connection is gone")

// Read gives what the program says. io.EOF is its own end; anything else says
// that the connection is over.
func (t *tunnel) Read(b []byte) (int, error) {
	t.read.Lock()
	defer t.read.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	for t.left == 0 {
		if t.end != nil {
			return 0, t.end
		}
		if err := t.next(); err != nil {
			return 0, timely(err)
		}
	}
	n, err := t.s.Read(b[:min(len(b), t.left)])
	t.left -= n
	if err == io.EOF { //nolint:errorlint // the multiplexer gives it bare
		err = io.ErrUnexpectedEOF
	}
	return n, timely(err)
}

// next reads a frame's head.
func (t *tunnel) next() error {
	for t.have < tunnelHead {
		n, err := t.s.Read(t.head[t.have:])
		t.have += n
		if err == io.EOF { //nolint:errorlint // as above
			err = io.ErrUnexpectedEOF
		}
		if err != nil && t.have < tunnelHead {
			return err
		}
	}
	t.have = 0
	switch tag, n := wire.Tag(t.head[0]), binary.BigEndian.Uint32(t.head[1:]); {
	case tag == wire.TagStdout && n > 0 && n <= wire.MaxFrame:
		t.left = int(n)
	case tag == wire.TagEnd && n == 0:
		t.end = io.EOF
		// Nobody needs to read on, and the connection may be gone all the same.
		t.c.task(func() {
			_, _ = io.ReadFull(t.s, make([]byte, 1))
			_ = t.s.Close()
		})
	default: // TagError, or nothing of a guest's
		t.end = errGone
		_ = t.s.Close()
	}
	return nil
}

// Write gives the program something to read.
func (t *tunnel) Write(b []byte) (int, error) {
	n, err := t.s.Write(b)
	return n, timely(err)
}

// ReadFrom gives it all of r, in pieces that are worth a frame.
func (t *tunnel) ReadFrom(r io.Reader) (sent int64, err error) {
	buf := make([]byte, wire.MaxFrame)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if n, werr := t.Write(buf[:n]); werr != nil {
				return sent + int64(n), werr
			}
			sent += int64(n)
		}
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}

func (t *tunnel) CloseWrite() error { return t.s.CloseWrite() }

// Close ends both directions.
func (t *tunnel) Close() error {
	t.stop()
	return t.s.Close()
}

func (t *tunnel) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

func (t *tunnel) SetReadDeadline(at time.Time) error { return t.s.SetReadDeadline(at) }

func (t *tunnel) SetWriteDeadline(at time.Time) error {
	t.stop()
	if at.IsZero() || !at.After(time.Now()) {
		return t.s.SetWriteDeadline(at)
	}
	if err := t.s.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	t.mu.Lock()
	t.timer = time.AfterFunc(time.Until(at), func() { _ = t.s.SetWriteDeadline(past) })
	t.mu.Unlock()
	return nil
}

func (t *tunnel) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// inside is the address of both ends: there is no network between them.
type inside struct{}

func (inside) Network() string { return "tunnel" }
func (inside) String() string  { return "sandbox" }

func (*tunnel) LocalAddr() net.Addr  { return inside{} }
func (*tunnel) RemoteAddr() net.Addr { return inside{} }

// timely gives the multiplexer's timeout the name that every connection's has.
func timely(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return os.ErrDeadlineExceeded
	}
	return err
}
