package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A guest that reads nothing holds no call beyond its context: not those that
// order, not those that send content, not the ends of streams; and when it is
// given up, nothing is left.
func TestAGuestThatStopsReadingHoldsNobodyBeyondItsContext(t *testing.T) {
	for name, fills := range map[string]bool{"with little on its way": false, "with all on its way that there is room for": true} {
		t.Run(name, func(t *testing.T) {
			host, inside := net.Pipe()
			go func() { // it greets, and reads nothing more
				_, _ = wire.ReadHello(inside, &wire.HostHello{})
				_ = wire.WriteHello(inside, Protocol, &wire.GuestHello{})
			}()
			c, err := Connect(limited(t), host, Options{Backend: "fake", Sandbox: "box"})
			if err != nil {
				t.Fatal(err)
			}
			c.grace = 20 * time.Millisecond
			if fills {
				_, _ = c.box.Write(make([]byte, 2*boxEnough)) // whatever it is: nobody reads it
				_, _ = c.box.Write(make([]byte, 2*boxEnough))
			}
			calls := map[string]func(ctx context.Context) error{
				"attest": func(ctx context.Context) error { _, err := c.Attest(ctx); return err },
				"extend": func(ctx context.Context) error { return c.Extend(ctx, time.Now().Add(time.Hour)) },
				"end":    c.End,
				"start": func(ctx context.Context) error {
					_, err := c.Start(ctx, driver.Cmd{Args: []string{"true"}, Timeout: time.Second, Stdin: true})
					return err
				},
				"a start with a large order": func(ctx context.Context) error {
					args := []string{"true"}
					for range 20 {
						args = append(args, string(bytes.Repeat([]byte("a"), 100<<10)))
					}
					_, err := c.Start(ctx, driver.Cmd{Args: args, Timeout: time.Second})
					return err
				},
				"stat":   func(ctx context.Context) error { _, err := c.Files().Stat(ctx, "x"); return err },
				"create": func(ctx context.Context) error { _, err := c.Files().Create(ctx, "x", 0o600); return err },
			}
			for name, do := range calls {
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
					start := time.Now()
					err := do(ctx)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", name, err)
					}
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("%s took %v", name, took)
					}
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			_ = inside.Close()
			quiet(t)
		})
	}
}

// opensWide is a guest that opens each window again and again, without reading
// any of what comes after the order.
type opensWide struct{ net.Conn }

func (o opensWide) serve(files bool) {
	_, _ = wire.ReadHello(o, &wire.HostHello{})
	_ = wire.WriteHello(o, Protocol, &wire.GuestHello{})
	var head [muxHead]byte
	var id byte
	for ordered := 0; ordered < 2; { // its data stream, its order
		if _, err := io.ReadFull(o, head[:]); err != nil {
			return
		}
		if head[1] != muxData {
			continue
		}
		ordered++
		id = head[7]
		length := int64(head[10])<<8 | int64(head[11])
		_, _ = io.CopyN(io.Discard, o, length)
		if files {
			break
		}
	}
	answer := message(&wire.Event{Kind: wire.EventStarted, ID: 1})
	if files {
		answer = message(&wire.FileReply{})
	}
	_, _ = o.Write(append(muxFrame(muxWindowUpdate, 2, uint32(id), nil), muxFrame(muxData, 0, uint32(id), answer)...))
	wide := muxFrame(muxWindowUpdate, 0, 1, nil)
	wide[9] = 8 // 512 KiB more
	for {
		if _, err := o.Write(wide); err != nil {
			return
		}
	}
}

// What a guest invites and does not read is not kept for it without bound,
// and who sends it is held no longer than he wants.
func TestAGuestThatInvitesWithoutReadingFillsNoMemory(t *testing.T) {
	for name, send := range map[string]func(ctx context.Context, c *Client) (io.Writer, func() error, error){
		"a file": func(ctx context.Context, c *Client) (io.Writer, func() error, error) {
			w, err := c.Files().Create(ctx, "x", 0o600)
			if err != nil {
				return nil, nil, err
			}
			return w, w.Close, nil
		},
		"stdin": func(ctx context.Context, c *Client) (io.Writer, func() error, error) {
			p, err := c.Start(ctx, driver.Cmd{Args: []string{"cat"}, Stdin: true, Timeout: time.Minute})
			if err != nil {
				return nil, nil, err
			}
			context.AfterFunc(ctx, func() { _ = c.Close() }) // as a sandbox is that does not answer
			return p.Stdin(), p.Stdin().Close, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			host, inside := net.Pipe()
			served := make(chan struct{})
			go func() { defer close(served); opensWide{inside}.serve(name == "a file") }()
			c, err := Connect(limited(t), host, Options{Backend: "fake", Sandbox: "box"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(limited(t))
			defer cancel()
			w, end, err := send(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(100*time.Millisecond, cancel)
			start, sent := time.Now(), 0
			for err == nil && sent < 256<<20 {
				var n int
				n, err = w.Write(make([]byte, 1<<20))
				sent += n
			}
			if err == nil || sent > 4*boxEnough+1<<20 {
				t.Errorf("%d KiB were taken: %v", sent>>10, err)
			}
			_ = end()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			_ = c.Close()
			_ = inside.Close()
			<-served
			quiet(t)
		})
	}
}

// An engine may keep the connection to what it has removed. What waits without
// an end of its own then ends soon after the sandbox, and not while it is only
// paused.
func TestASilentGuestIsAskedForElsewhere(t *testing.T) {
	var asked atomic.Int32
	c, inside := unanswering(t, func(context.Context) bool { return asked.Add(1) > 2 })
	_, err := c.Start(limited(t), driver.Cmd{Args: []string{"true"}, Timeout: time.Hour})
	if !errors.Is(err, driver.CodeGone) || asked.Load() < 3 {
		t.Errorf("asked %d times, it gave %v", asked.Load(), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_ = inside.Close()
	quiet(t)
}

// Whoever is asked for in vain does not hold the connection's end.
func TestNobodyWaitsForTheAnswerElsewhere(t *testing.T) {
	asked := make(chan struct{}, 1)
	c, inside := unanswering(t, func(ctx context.Context) bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return false
	})
	<-asked
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > silence/2 {
		t.Errorf("its end took %v", took)
	}
	_ = inside.Close()
	quiet(t)
}

// unanswering is a client of a guest that greets, reads all, and says nothing.
func unanswering(t *testing.T, over func(context.Context) bool) (*Client, net.Conn) {
	t.Helper()
	host, inside := net.Pipe()
	go func() {
		_, _ = wire.ReadHello(inside, &wire.HostHello{})
		_ = wire.WriteHello(inside, Protocol, &wire.GuestHello{})
		_, _ = io.Copy(io.Discard, inside)
	}()
	c, err := Connect(limited(t), host, Options{Over: over, patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c, inside
}
