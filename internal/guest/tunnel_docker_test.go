//go:build dockertest

package guest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// connected is the beginning of a program that connects to the guest's port.
var connected = fmt.Sprintf(`import hashlib, os, socket, struct, sys, threading, time
def connect():
    s = socket.create_connection(("127.0.0.1", %d), 30)
    s.settimeout(60)
    return s
`, guest.ProxyPort)

// listening is an owned box whose programs' connections are served.
func listening(t testing.TB, serve func(ctx context.Context, conn guest.Conn)) *box {
	t.Helper()
	b := newBox(t, want{boot: guest.Boot{Owned: true}})
	if err := b.guest.Listen(limited(t, 10*time.Second), serve); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestATunnelLosesNothingInEitherDirectionAndKeepsHalvesApart(t *testing.T) {
	const size = 16 << 20
	sums := make(chan string, 1)
	b := listening(t, func(_ context.Context, conn guest.Conn) {
		h := sha256.New()
		if n, err := io.Copy(h, conn); n != size || err != nil { // the program says all first
			t.Errorf("%d bytes came up, %v", n, err)
		}
		sums <- hex.EncodeToString(h.Sum(nil))
		h.Reset()
		for block := range size / (1 << 20) {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = byte(i * (block + 3))
			}
			_, _ = h.Write(b)
			if _, err := conn.Write(b); err != nil {
				t.Errorf("down: %v", err)
				return
			}
		}
		_ = conn.CloseWrite()
		sums <- hex.EncodeToString(h.Sum(nil))
	})
	r := b.run("python3", "-c", connected+`
s = connect()
h = hashlib.sha256()
for i in range(16):
    b = os.urandom(1 << 20)
    h.update(b); s.sendall(b)
s.shutdown(socket.SHUT_WR)
print(h.hexdigest())
h = hashlib.sha256()
while True:
    b = s.recv(1 << 16)
    if not b: break
    h.update(b)
print(h.hexdigest())
`)
	if said, want := strings.Fields(r.stdout), []string{<-sums, <-sums}; len(said) != 2 || said[0] != want[0] || said[1] != want[1] {
		t.Errorf("the program says %q, the host %q; %s", said, want, r.stderr)
	}
}

func TestAHostThatHasSaidAllStillHears(t *testing.T) {
	got := make(chan string, 1)
	b := listening(t, func(_ context.Context, conn guest.Conn) {
		_, _ = io.WriteString(conn, "all")
		_ = conn.CloseWrite()
		said, err := io.ReadAll(conn)
		got <- fmt.Sprint(string(said), err)
	})
	r := b.run("python3", "-c", connected+`
s = connect()
b = b''
while True:
    n = s.recv(10)
    if not n: break
    b += n
s.sendall(b + b' right')
s.close()
`)
	if said := <-got; said != "all right<nil>" || r.exit.Code != 0 {
		t.Errorf("%q, %+v", said, r)
	}
}

func TestAProgramThatVanishesEndsTheHostsWriting(t *testing.T) {
	for name, script := range map[string]string{
		"with a reset": `s = connect(); s.recv(1); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()`,
		"unread":       `s = connect(); s.recv(1); s.close()`,
		"killed":       `s = connect(); s.recv(1); os.kill(os.getpid(), 9)`,
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			b := listening(t, func(_ context.Context, conn guest.Conn) {
				read := make(chan struct{})
				go func() { defer close(read); _, _ = io.Copy(io.Discard, conn) }()
				defer func() { _ = conn.Close(); <-read }()
				for {
					if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
						ended <- err
						return
					}
				}
			})
			b.run("python3", "-c", connected+script)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it wrote to the end")
				}
			case <-time.After(15 * time.Second):
				t.Error("the host writes to nobody")
			}
		})
	}
}

func TestAHostThatHangsUpIsSeenByTheProgram(t *testing.T) {
	b := listening(t, func(context.Context, guest.Conn) {})
	r := b.run("python3", "-c", connected+`print(connect().recv(1))`)
	if r.stdout != "b''\n" {
		t.Errorf("%+v", r)
	}
}

func TestMoreConnectionsThanTheBoundWaitAndEachIsServed(t *testing.T) {
	var now, most, all atomic.Int32
	b := listening(t, func(_ context.Context, conn guest.Conn) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		all.Add(1)
		_, _ = io.Copy(conn, conn)
		now.Add(-1)
		_ = conn.CloseWrite()
	})
	idle := rss(t, b)
	for range 2 { // what the first round held is free in the second
		all.Store(0)
		r := b.run("python3", "-c", connected+`
conns = [connect() for _ in range(300)]
n = 0
for s in conns:
    s.sendall(b'x' * 1000); s.shutdown(socket.SHUT_WR)
    while True:
        b = s.recv(4096)
        if not b: break
        n += len(b)
    s.close()
print(n)
`)
		if r.stdout != "300000\n" || all.Load() != 300 {
			t.Fatalf("%d were served: %+v", all.Load(), r)
		}
	}
	after := rss(t, b)
	t.Logf("%d at once; PID 1: %.1f MiB idle, %.1f after", most.Load(), idle, after)
	if most.Load() > guest.MaxTunnels || idle > 8 || after > 32 {
		t.Errorf("%d at once; PID 1 has %.1f MiB idle, %.1f after", most.Load(), idle, after)
	}
}

// Programs that do nothing but hold what they get cost PID 1 no more than the
// bound, and nothing else in the sandbox waits for them.
func TestHoldersOfConnectionsHoldUpNobodyElse(t *testing.T) {
	var taken atomic.Int64
	b := listening(t, func(ctx context.Context, conn guest.Conn) {
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		for {
			// The size by which the windows' buffers grow furthest beyond them.
			n, err := conn.Write(make([]byte, 32000))
			if taken.Add(int64(n)); err != nil {
				return
			}
		}
	})
	p, err := b.guest.Start(limited(t, 10*time.Second), driver.Cmd{Args: []string{"python3", "-c", connected + `
conns = [connect() for _ in range(400)]
print('held', flush=True)
time.sleep(1000)`}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.Recv(limited(t, 30*time.Second)); err != nil || string(c.Data) != "held\n" {
		t.Fatalf("%q, %v", c.Data, err)
	}
	for before := int64(-1); before != taken.Load(); { // until no more is taken
		before = taken.Load()
		for range 50 {
			if r := b.run("true"); r.exit.Code != 0 {
				t.Fatalf("%+v", r)
			}
		}
	}
	got := rss(t, b)
	t.Logf("PID 1 has %.1f MiB beside %d connections that nobody reads, which took %d MiB", got, guest.MaxTunnels, taken.Load()>>20)
	if got > 1.25*guest.MaxTunnels { // MiB: PID 1's memory limit
		t.Errorf("PID 1 has %.1f MiB", got)
	}
	if err := p.Kill(limited(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheOwnersConnectionCarriesAndOnce(t *testing.T) {
	serve := func(_ context.Context, conn guest.Conn) { _, _ = io.WriteString(conn, "owner") }
	b := listening(t, serve)
	if err := b.guest.Listen(limited(t, 10*time.Second), serve); !errors.Is(err, driver.CodeConflict) {
		t.Errorf("twice: %v", err)
	}
	other, err := b.join(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = other.Listen(limited(t, 10*time.Second), func(context.Context, guest.Conn) { t.Error("the bridge serves") })
	if !errors.Is(err, driver.CodeUnsupported) {
		t.Errorf("by the bridge: %v", err)
	}
	if r := b.run("python3", "-c", connected+`print(connect().recv(10))`); r.stdout != "b'owner'\n" {
		t.Errorf("%+v", r)
	}
	if r := b.run("python3", "-c", connected+`
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try: s.bind(("127.0.0.1", `+fmt.Sprint(guest.ProxyPort)+`)); print("taken")
except OSError as e: print(e.errno)`); r.stdout != "98\n" {
		t.Errorf("a program takes the port: %+v", r)
	}
}

func TestWithoutListenNothingListens(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}})
	if r := b.run("python3", "-c", connected+`connect()`); r.exit.Code == 0 || !strings.Contains(r.stderr, "Connection refused") {
		t.Errorf("%+v", r)
	}
}
