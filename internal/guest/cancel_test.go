package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// counted is a connection that does something at its n-th step: at the
// beginning or at the end of a read or a write.
type counted struct {
	net.Conn
	steps atomic.Int64
	n     atomic.Int64
	at    func()
}

func (c *counted) step() {
	if c.steps.Add(1) == c.n.Load() {
		c.at()
	}
}

func (c *counted) Read(b []byte) (int, error) {
	c.step()
	n, err := c.Conn.Read(b)
	c.step()
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	c.step()
	n, err := c.Conn.Write(b)
	c.step()
	return n, err
}

// works is a guest that keeps its word: a program runs from its order until
// the host gives it up, or a signal to it ends it.
type works struct {
	mu      sync.Mutex
	running map[*yamux.Stream]bool
	files   map[string]bool // under their own names
}

func (w *works) serve(op wire.Op, s *yamux.Stream) {
	done := wire.Event{Kind: wire.EventDone}
	switch op {
	case wire.OpExec:
		var m wire.Exec
		if wire.Read(s, &m) != nil {
			return
		}
		w.set(s, true)
		defer w.set(s, false)
		_ = wire.Write(s, &wire.Event{Kind: wire.EventStarted, ID: 1})
		if m.Args[0] == "true" {
			_ = wire.Write(s, &wire.Event{Kind: wire.EventExited})
		}
		_, _ = io.Copy(io.Discard, s)
	case wire.OpData:
		_ = wire.Read(s, &wire.Data{})
		_, _ = wire.WriteFrames(s, wire.TagStdout, []byte("out"))
		_, _ = wire.WriteFrames(s, wire.TagEnd, nil)
	case wire.OpAttest:
		_ = wire.Read(s, &wire.Empty{})
		_ = wire.Write(s, &done)
		_ = wire.Write(s, &wire.Report{NoNewPrivs: 1})
	case wire.OpFiles:
		w.file(s)
	default:
		_, _ = io.ReadFull(s, make([]byte, 4))
		_ = wire.Write(s, &done)
	}
}

func (w *works) file(s *yamux.Stream) {
	var m wire.FileRequest
	if wire.Read(s, &m) != nil {
		return
	}
	_ = wire.Write(s, &wire.FileReply{Infos: []wire.FileInfo{{Name: "x"}}})
	switch m.Op {
	case wire.FileList:
		_ = wire.Write(s, &wire.FileReply{})
	case wire.FileOpen:
		_, _ = wire.WriteFrames(s, wire.TagStdout, []byte("content"))
		_, _ = wire.WriteFrames(s, wire.TagEnd, nil)
	case wire.FileCreate:
		frames := wire.NewFrames(s)
		for {
			if _, _, err := frames.Next(); errors.Is(err, io.EOF) {
				w.mu.Lock()
				w.files[m.Name] = true
				w.mu.Unlock()
				_ = wire.Write(s, &wire.FileReply{})
				return
			} else if err != nil {
				return
			}
		}
	default:
	}
}

func (w *works) set(s *yamux.Stream, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.running, s); runs {
		w.running[s] = true
	}
}

func (w *works) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

func (w *works) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[name]
}

// The context ends at every single step of every operation. Each time the
// operation succeeds in full or fails with the context's own error, and a
// cancelled one leaves no program, no file and no goroutine.
func TestM78M176ACancellationAtAnyStepLeavesNothing(t *testing.T) {
	sleep := driver.Cmd{Args: []string{"sleep"}, Timeout: time.Minute}
	var committed bool
	trueCmd := driver.Cmd{Args: []string{"true"}, Timeout: time.Minute}
	for name, c := range map[string]struct {
		prepare func(ctx context.Context, c *Client) (driver.Process, error)
		do      func(ctx context.Context, c *Client, p driver.Process) error
		keeps   bool // success means that something runs, or is there
	}{
		"start": {do: func(ctx context.Context, c *Client, _ driver.Process) error {
			_, err := c.Start(ctx, sleep)
			return err
		}, keeps: true},
		"recv": {prepare: func(ctx context.Context, c *Client) (driver.Process, error) { return c.Start(ctx, trueCmd) },
			do: func(ctx context.Context, _ *Client, p driver.Process) error { _, err := p.Recv(ctx); return err }},
		"wait": {prepare: func(ctx context.Context, c *Client) (driver.Process, error) { return c.Start(ctx, trueCmd) },
			do: func(ctx context.Context, _ *Client, p driver.Process) error { _, err := p.Wait(ctx); return err }},
		"kill": {prepare: func(ctx context.Context, c *Client) (driver.Process, error) { return c.Start(ctx, trueCmd) },
			do: func(ctx context.Context, _ *Client, p driver.Process) error { return p.Kill(ctx) }},
		"attest": {do: func(ctx context.Context, c *Client, _ driver.Process) error { _, err := c.Attest(ctx); return err }},
		"extend": {do: func(ctx context.Context, c *Client, _ driver.Process) error {
			return c.Extend(ctx, time.Now().Add(time.Hour))
		}},
		"stat": {do: func(ctx context.Context, c *Client, _ driver.Process) error {
			_, err := c.Files().Stat(ctx, "x")
			return err
		}},
		"list": {do: func(ctx context.Context, c *Client, _ driver.Process) error {
			_, err := c.Files().List(ctx, "/")
			return err
		}},
		"open": {do: func(ctx context.Context, c *Client, _ driver.Process) error {
			r, _, err := c.Files().Open(ctx, "x")
			if err != nil {
				return err
			}
			_, err = io.ReadAll(r)
			return errors.Join(err, r.Close())
		}},
		"create": {keeps: true, do: func(ctx context.Context, c *Client, _ driver.Process) error {
			w, err := c.Files().Create(ctx, "x", 0o644)
			if err != nil {
				return err
			}
			if _, err = w.Write([]byte("abc")); err != nil {
				return errors.Join(err, w.Close())
			}
			committed = true // from here on it may be there, whoever still waits to hear so
			return w.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			steps := int64(0)
			for n := int64(1); ; n++ {
				committed = false
				host, inside := net.Pipe()
				w := &works{running: map[*yamux.Stream]bool{}, files: map[string]bool{}}
				go (&fake{t: t, conn: inside, on: w.serve}).serve()
				ctx, cancel := context.WithCancel(limited(t))
				conn := &counted{Conn: host, at: cancel}
				client, err := Connect(limited(t), conn, Options{})
				if err != nil {
					t.Fatal(err)
				}
				var p driver.Process
				if c.prepare != nil {
					if p, err = c.prepare(limited(t), client); err != nil {
						t.Fatal(err)
					}
				}
				conn.n.Store(conn.steps.Load() + n) // from here on
				err = c.do(ctx, client, p)
				reached := conn.steps.Load() >= conn.n.Load()
				switch {
				case err != nil && (!errors.Is(err, context.Canceled) || driver.CodeOf(err) != ""):
					t.Errorf("step %d: not the context's own error: %v", n, err)
				case err != nil && !reached:
					t.Errorf("step %d: %v, though nobody cancelled", n, err)
				case err != nil && (w.count() > 0 && name == "start" || w.has("/work/x") && !committed):
					t.Errorf("step %d: cancelled, and %d programs, its file %v", n, w.count(), w.has("/work/x"))
				case err == nil && c.keeps && w.count() == 0 && !w.has("/work/x"):
					t.Errorf("step %d: success, and nothing is there", n)
				}
				cancel()
				if err := client.Close(); err != nil {
					t.Error(err)
				}
				_ = inside.Close()
				quiet(t)
				if !reached {
					steps = n - 1
					break
				}
			}
			if t.Logf("%d steps", steps); steps < 2 && c.prepare == nil {
				t.Error("nothing was cancelled")
			}
		})
	}
}

func TestM176ACancellationAtAnyStepOfTheGreetingClosesTheConnection(t *testing.T) {
	for n := int64(1); ; n++ {
		host, inside := net.Pipe()
		go (&fake{t: t, conn: inside, on: (&works{}).serve}).serve()
		ctx, cancel := context.WithCancel(limited(t))
		conn := &counted{Conn: host, at: cancel}
		conn.n.Store(n)
		c, err := Connect(ctx, conn, Options{})
		if err == nil {
			_ = c.Close()
		} else if !errors.Is(err, context.Canceled) || driver.CodeOf(err) != "" {
			t.Errorf("step %d: %v", n, err)
		}
		if _, err := host.Write([]byte{0}); err == nil {
			t.Errorf("step %d: the connection is open", n)
		}
		cancel()
		_ = inside.Close()
		quiet(t)
		if conn.steps.Load() < n {
			if n < 4 {
				t.Error(fmt.Errorf("only %d steps", n))
			}
			return
		}
	}
}
