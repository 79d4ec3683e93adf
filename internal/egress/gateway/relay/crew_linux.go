package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// Options say how large a Crew may become.
type Options struct {
	// Conns is how many connections there are at most, of all relays together.
	Conns int
	// Files is how many files a process may have open, at least MinFiles.
	Files int
	// Memory is where relays together begin to save, in bytes; 0 = never.
	Memory int64
}

const (
	// ownFiles are those of a relay beside its connections: its pipes, the way
	// it gets its orders, what the runtime has, and a few to take sockets over.
	ownFiles = 2*gateway.MaxPipes + 32

	// MinFiles is how many files a process has to be allowed to have open.
	MinFiles = 1024

	// patience is how long a relay may take to start, or to take an order.
	patience = 10 * time.Second

	// attempts is how many relays a connection is offered to.
	attempts = 3

	// lasting is how long a relay has to live to be replaced before anybody
	// needs another one.
	lasting = time.Second
)

var errClosed = errors.New("the relays are closed")

// Crew are the relays of a gateway. It is safe for concurrent use.
type Crew struct {
	o    Options
	room int         // connections of each relay
	work chan func() // for the thread that starts relays
	idle chan struct{}
	stop context.CancelFunc
	ctx  context.Context //nolint:containedctx // the lifetime of what it has started
	all  sync.WaitGroup

	mu       sync.Mutex
	mates    []*mate
	starting *start
	closed   bool
}

// start is a relay that is being started.
type start struct {
	done chan struct{} // closed once err is there
	err  error
}

// Open makes a Crew with one relay ready. Who opened it closes it.
func Open(ctx context.Context, o Options) (*Crew, error) {
	if o.Files < MinFiles {
		return nil, fmt.Errorf("a process may have %d files open, and a relay takes at least %d", o.Files, MinFiles)
	}
	c := &Crew{o: o, room: min(o.Conns, (o.Files-ownFiles)/2), work: make(chan func()), idle: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	go c.thread()
	c.mu.Lock()
	s := c.grow()
	c.mu.Unlock()
	select {
	case <-s.done:
	case <-ctx.Done():
		s = &start{err: ctx.Err()}
	}
	if s.err != nil {
		c.Close()
		return nil, s.err
	}
	return c, nil
}

// thread starts relays. The kernel kills them when the thread that started them
// ends, and so it is one that lasts: until Close has waited for all of them.
func (c *Crew) thread() {
	defer close(c.idle)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for w := range c.work {
		w()
	}
}

// Close ends all relays, and with them their connections, and waits for them.
func (c *Crew) Close() {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.all.Wait()
	if !again {
		close(c.work)
	}
	<-c.idle
}

var _ gateway.Carrier = (*Crew)(nil).Carry

// Carry hands a passage over to a relay with room. It is refused (capacity) if
// none can be had, and ends without a reason when its relay does.
func (c *Crew) Carry(ctx context.Context, p gateway.Passage, ended func(error)) {
	defer p.Client.Close()
	defer p.Server.Close()
	for range attempts {
		m, id, err := c.place(ctx, ended)
		switch {
		case err == nil:
			if m.order(id, p) {
				return
			}
			continue // a relay that was ending
		case ctx.Err() != nil || errors.Is(err, errClosed):
			ended(err)
		default:
			ended(errNoRelay)
		}
		return
	}
	ended(errNoRelay)
}

// errNoRelay is told of a connection that no relay took.
var errNoRelay = &gateway.Refusal{Reason: egress.Capacity, Detail: "no relay takes it"}

// place finds room for a connection, or makes some.
func (c *Crew) place(ctx context.Context, ended func(error)) (*mate, uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return nil, 0, errClosed
		}
		free := 0
		var with *mate
		for _, m := range c.mates {
			free += c.room - len(m.held)
			if with == nil && len(m.held) < c.room {
				with = m
			}
		}
		// The next relay is ready before it is needed.
		if free <= c.reserve() && len(c.mates)*c.room < c.o.Conns {
			c.grow()
		}
		if with != nil {
			return with, with.hold(ended), nil
		}
		s := c.grow()
		c.mu.Unlock()
		select {
		case <-s.done:
		case <-ctx.Done():
			s = &start{err: ctx.Err()}
		}
		c.mu.Lock()
		if s.err != nil {
			return nil, 0, s.err
		}
	}
}

func (c *Crew) reserve() int { return min(c.room/4, 64) }

// grow begins to start a relay, unless one is being started. c.mu is held.
func (c *Crew) grow() *start {
	if c.starting != nil {
		return c.starting
	}
	s := &start{done: make(chan struct{})}
	if c.closed {
		s.err = errClosed
		close(s.done)
		return s
	}
	c.starting = s
	c.all.Go(func() {
		m, err := c.hire()
		c.mu.Lock()
		c.starting, s.err = nil, err
		if err == nil {
			c.mates = append(c.mates, m)
		}
		c.mu.Unlock()
		close(s.done)
		if err == nil {
			c.listen(m)
		}
	})
	return s
}
