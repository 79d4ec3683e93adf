package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// programs is a guest whose programs connect one after the other: each is
// given the stream of its connection.
func programs(each ...func(s *yamux.Stream)) func(op wire.Op, s *yamux.Stream) {
	var next atomic.Int32
	return func(op wire.Op, s *yamux.Stream) {
		_ = wire.Read(s, &wire.Empty{})
		if op == wire.OpListen {
			_ = wire.Write(s, &wire.Event{Kind: wire.EventDone})
		}
		if op == wire.OpTunnel {
			if n := int(next.Add(1)); n <= len(each) {
				_ = wire.Write(s, &wire.Event{Kind: wire.EventStarted})
				each[n-1](s)
			}
		}
	}
}

func say(s *yamux.Stream, words string) { _, _ = wire.WriteFrames(s, wire.TagStdout, []byte(words)) }
func end(s *yamux.Stream)               { _, _ = wire.WriteFrames(s, wire.TagEnd, nil) }
func gone(s *yamux.Stream) {
	_, _ = wire.WriteFrames(s, wire.TagError, wire.Marshal(&wire.Failure{}))
}

func TestATunnelCarriesBothDirectionsToTheirEnds(t *testing.T) {
	got := make(chan string, 1)
	c := connect(t, programs(func(s *yamux.Stream) {
		say(s, "hello, ")
		say(s, "host")
		end(s)
		b, _ := io.ReadAll(s)
		got <- string(b)
	}))
	served := make(chan error, 1)
	err := c.Listen(limited(t), func(_ context.Context, conn Conn) {
		b, err := io.ReadAll(conn)
		if err == nil && string(b) != "hello, host" {
			err = errors.New(string(b))
		}
		// The program has said all, and still hears.
		_, werr := conn.Write([]byte("hello, "))
		n, rerr := io.Copy(conn, iotest.DataErrReader(strings.NewReader("program")))
		if n != 7 {
			rerr = errors.Join(rerr, io.ErrShortWrite)
		}
		served <- errors.Join(err, werr, rerr, conn.CloseWrite())
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if b := <-got; b != "hello, program" {
		t.Errorf("the program heard %q", b)
	}
}

func TestAConnectionThatIsGoneEndsTheHostsWriting(t *testing.T) {
	for name, program := range map[string]func(s *yamux.Stream){
		"after its end":     func(s *yamux.Stream) { end(s); gone(s) },
		"without an end":    gone,
		"a frame of no tag": func(s *yamux.Stream) { end(s); _, _ = s.Write([]byte{9, 0, 0, 0, 0}) },
		"a stream's end":    func(s *yamux.Stream) { end(s); _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, programs(program))
			served := make(chan error, 1)
			err := c.Listen(limited(t), func(_ context.Context, conn Conn) {
				_, _ = io.Copy(io.Discard, conn)
				for {
					if _, err := conn.Write(make([]byte, 32<<10)); err != nil {
						served <- err
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-served:
				if err == nil {
					t.Error("it wrote to the end")
				}
			case <-time.After(10 * time.Second):
				t.Error("it writes to nobody for ever")
			}
		})
	}
}

func TestAGuestThatBreaksATunnelsProtocolIsToldNoEndOfAProgram(t *testing.T) {
	for name, words := range map[string]string{
		"no frame":            "GET / HTTP/1.1\r\n",
		"an empty frame":      "\x01\x00\x00\x00\x00",
		"a frame too long":    "\x01\x00\x01\x00\x01",
		"a frame of stderr":   "\x02\x00\x00\x00\x01x",
		"an end with content": "\x00\x00\x00\x00\x01x",
		"half a head":         "\x01\x00\x00",
		"half a frame":        "\x01\x00\x00\x00\x09x",
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, programs(func(s *yamux.Stream) { _, _ = s.Write([]byte(words)); _ = s.Close() }))
			served := make(chan error, 1)
			err := c.Listen(limited(t), func(_ context.Context, conn Conn) {
				_, err := io.Copy(io.Discard, conn)
				served <- err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-served; err == nil {
				t.Error("it looks like a program that has said all")
			}
		})
	}
}

func TestATunnelsDeadlinesAreAConnections(t *testing.T) {
	c := connect(t, programs(func(s *yamux.Stream) {
		time.Sleep(50 * time.Millisecond)
		say(s, "late")
		_, _ = io.Copy(io.Discard, s)
	}))
	served := make(chan []error, 1)
	err := c.Listen(limited(t), func(_ context.Context, conn Conn) {
		var errs []error
		expect := func(ok bool, what string) {
			if !ok {
				errs = append(errs, errors.New(what))
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		_, err := conn.Read(make([]byte, 10))
		expect(errors.Is(err, os.ErrDeadlineExceeded), "a read outlasts its deadline")
		_ = conn.SetReadDeadline(time.Time{})
		b := make([]byte, 4)
		_, err = io.ReadFull(conn, b)
		expect(err == nil && string(b) == "late", "a deadline that is gone still acts, or took bytes")
		_ = conn.SetWriteDeadline(time.Now().Add(time.Hour))
		_, err = conn.Write([]byte("x"))
		expect(err == nil, "a deadline far off acts")
		_ = conn.SetWriteDeadline(time.Now())
		_, err = conn.Write(make([]byte, 10<<20))
		expect(errors.Is(err, os.ErrDeadlineExceeded), "a write outlasts its deadline")
		_ = conn.SetWriteDeadline(time.Time{})
		_, err = conn.Write([]byte("x"))
		expect(err == nil, "a write deadline that is gone still acts")
		served <- errs
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range <-served {
		t.Error(err)
	}
}

func TestNoMoreThanTheBoundAreServedAtOnceAndCloseEndsThem(t *testing.T) {
	all := make([]func(*yamux.Stream), 2*MaxTunnels)
	for i := range all {
		all[i] = func(s *yamux.Stream) { _, _ = io.Copy(io.Discard, s) }
	}
	c := connect(t, programs(all...))
	var now atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	err := c.Listen(limited(t), func(ctx context.Context, _ Conn) {
		switch n := now.Add(1); {
		case n > MaxTunnels:
			t.Errorf("%d at once", n)
		case n == MaxTunnels:
			once.Do(func() { close(full) })
		}
		<-ctx.Done()
		now.Add(-1)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-full
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := now.Load(); n != 0 {
		t.Errorf("%d are still served after Close", n)
	}
	quiet(t)
}

func TestAGuestThatRefusesToListenSaysWhy(t *testing.T) {
	c := connect(t, func(_ wire.Op, s *yamux.Stream) {
		_ = wire.Read(s, &wire.Empty{})
		_ = wire.Write(s, &wire.Event{Kind: wire.EventFailed, Failure: wire.Failure{Code: "conflict", Text: "address in use"}})
	})
	err := c.Listen(limited(t), func(context.Context, Conn) { t.Error("served") })
	if driver.CodeOf(err) != driver.CodeConflict || !strings.Contains(err.Error(), "address in use") {
		t.Errorf("%v", err)
	}
}

func TestProgramsThatOnlyComeAndGoAreBoundInTime(t *testing.T) {
	p := pacer{rate: 1000, size: 10}
	start := time.Now()
	for range 110 {
		if !p.wait(t.Context()) {
			t.Fatal("it gave up")
		}
	}
	if took := time.Since(start); took < 90*time.Millisecond {
		t.Errorf("110 in %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p.wait(ctx) {
		t.Error("it goes on after the end")
	}
}

// carried reads a tunnel's bytes as wire describes them: what a program said,
// and whether it said all.
func carried(b []byte) (said []byte, all bool) {
	for len(b) >= tunnelHead {
		tag, n := wire.Tag(b[0]), int(binary.BigEndian.Uint32(b[1:]))
		b = b[tunnelHead:]
		switch {
		case tag == wire.TagEnd && n == 0:
			return said, true
		case tag != wire.TagStdout || n == 0 || n > wire.MaxFrame:
			return said, false
		}
		said = append(said, b[:min(n, len(b))]...)
		b = b[min(n, len(b)):]
	}
	return said, false
}

// FuzzTunnel: whatever a guest says on a tunnel, cut anywhere, the host hears
// what was framed and no byte else, and takes nothing but an end for an end.
func FuzzTunnel(f *testing.F) {
	frame := func(s string) []byte { return wire.AppendFrame(nil, wire.TagStdout, []byte(s)) }
	f.Add(append(frame("GET / HTTP/1.1\r\n"), 0, 0, 0, 0, 0), 3)
	f.Add(append(frame("x"), wire.AppendFrame(nil, wire.TagError, wire.Marshal(&wire.Failure{}))...), 1)
	f.Add(append(append(frame("a"), 0, 0, 0, 0, 0), frame("after its end")...), 2)
	f.Add([]byte("\x01\xff\xff\xff\xff"), 5)
	f.Add([]byte("\x01\x00\x00\x00\x00"), 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		if len(b) > 32<<10 {
			return
		}
		cut = max(1, cut, len(b)/16) // so many pieces at most
		host, inside := net.Pipe()
		on := programs(func(s *yamux.Stream) {
			for rest := b; len(rest) > 0; rest = rest[min(cut, len(rest)):] {
				if _, err := s.Write(rest[:min(cut, len(rest))]); err != nil {
					return
				}
			}
			_ = s.Close()
		})
		served := make(chan struct{})
		go func() { defer close(served); (&fake{conn: inside, on: on}).serve() }()
		c, err := Connect(limited(t), host, Options{})
		if err != nil {
			t.Fatal(err)
		}
		type heard struct {
			said []byte
			err  error
		}
		got := make(chan heard, 1)
		if err := c.Listen(limited(t), func(_ context.Context, conn Conn) {
			said, err := io.ReadAll(conn)
			got <- heard{said, err}
		}); err != nil {
			t.Fatal(err)
		}
		said, all := carried(b)
		if h := <-got; !bytes.Equal(h.said, said) || (h.err == nil) != all {
			t.Errorf("it heard %q, %v; said was %q, all %v", h.said, h.err, said, all)
		}
		_ = c.Close()
		_ = inside.Close()
		<-served
	})
}
