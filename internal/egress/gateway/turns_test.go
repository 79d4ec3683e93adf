package gateway

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

var checked = netip.MustParseAddrPort("203.0.113.1:443")

// routerTo allows example.com, at a server for each connection.
func routerTo(t *testing.T, denials egress.Denials, server func(*halfPipe)) func(context.Context, net.Conn) {
	t.Helper()
	pins := &Pins{}
	pins.Pin("example.com", false, []netip.Addr{checked.Addr()}, MaxTTL, time.Now())
	r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: pins, Denials: denials, Dial: dialTo(server)})
	return func(ctx context.Context, c net.Conn) { r.Serve(ctx, c, checked) }
}

func dialTo(server func(*halfPipe)) Dial {
	return func(context.Context, netip.AddrPort) (net.Conn, error) {
		near, end := pipe()
		go server(end)
		return near, nil
	}
}

const getAt443 = "GET / HTTP/1.1\r\nHost: example.com:443\r\n\r\n"

// However many connections begin something that is kept until it is whole, few
// are kept, and none for long.
func TestWhatFollowsTheFirstWordsIsReadAFewAtATime(t *testing.T) {
	t.Parallel()
	hello := inOne(message(sni("example.com")))
	for _, c := range []struct {
		name, first, then string
		full              bool // the server takes nothing but what is first
	}{
		{name: "half a head", first: getAt443, then: "GET / HTTP/1.1\r\nX: y"},
		{name: "half a ClientHello", first: string(hello), then: string(hello[:40])},
		{name: "a head that its server does not take", first: getAt443, then: getAt443, full: true},
		{name: "a ClientHello that its server does not take", first: string(hello), then: string(hello), full: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tally egress.Tally
				var pins Pins
				pins.Pin("example.com", false, []netip.Addr{checked.Addr()}, MaxTTL, time.Now())
				r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &pins, Denials: &tally, Dial: dialTo(func(end *halfPipe) {
					_, _ = io.ReadFull(end, make([]byte, len(c.first)))
					if !c.full {
						_, _ = io.Copy(io.Discard, end)
					}
				})})
				var served sync.WaitGroup
				for range maxTurns + 10 {
					client, near := pipe()
					defer client.Close()
					served.Go(func() { r.Serve(t.Context(), near, checked) })
					_, _ = io.WriteString(client, c.first)
					synctest.Wait()
					_, _ = io.WriteString(client, c.then)
				}
				synctest.Wait()
				if len(r.later) != maxTurns || len(r.slots) != maxTurns+10 {
					t.Errorf("%d of %d have a turn", len(r.later), len(r.slots))
				}
				start := time.Now()
				served.Wait()
				if took := time.Since(start); took > FirstWords {
					t.Errorf("it took %v", took)
				}
				if told, _ := tally.Denied(); len(told) != 1 || told[0].Reason != egress.Slow || told[0].Count != maxTurns+10 {
					t.Errorf("denied %+v", told)
				}
				if len(r.later) != 0 || len(r.slots) != 0 {
					t.Errorf("%d turns and %d slots are still taken", len(r.later), len(r.slots))
				}
			})
		})
	}
}

func TestBetweenRequestsAClientMayBeSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tally egress.Tally
		var got bytes.Buffer
		serve := routerTo(t, &tally, func(end *halfPipe) {
			_, _ = io.Copy(&got, end)
			_ = end.Close()
		})
		client, near := pipe()
		defer client.Close()
		var all sync.WaitGroup
		all.Go(func() { serve(t.Context(), near) })
		for range 3 {
			if _, err := io.WriteString(client, getAt443); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * FirstWords)
		}
		_ = client.CloseWrite()
		all.Wait()
		if told, _ := tally.Denied(); got.String() != strings.Repeat(getAt443, 3) || len(told) > 0 {
			t.Errorf("the server got %q, denied %+v", got.String(), told)
		}
	})
}

// In its owner's process one sandbox's proxy stands beside another's.
func TestOneSandboxsSilenceDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hello := inOne(message(sni("example.com")))
		proxyTo := func(server func(*halfPipe)) func(context.Context, net.Conn) {
			lookup := func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{checked.Addr()}, nil }
			return NewProxy(ProxyOptions{Policy: policyOf(t, "example.com"), Denials: &egress.Tally{}, Lookup: lookup, Dial: dialTo(server)}).Serve
		}
		var all sync.WaitGroup
		connect := func(serve func(context.Context, net.Conn)) *halfPipe {
			client, near := pipe()
			all.Go(func() { serve(t.Context(), near) })
			_, _ = io.WriteString(client, "CONNECT example.com:443 HTTP/1.1\r\n\r\n")
			_, _ = client.Read(make([]byte, 512))
			_, _ = client.Write(hello)
			return client
		}
		mute := proxyTo(func(end *halfPipe) { _, _ = io.Copy(io.Discard, end) })
		for range 2 * maxTurns {
			client := connect(mute)
			defer client.Close()
			_, _ = client.Write(hello[:10])
		}
		start := time.Now()
		again := make(chan time.Duration, 1)
		client := connect(proxyTo(func(end *halfPipe) {
			defer end.Close()
			_, _ = ReadHello(end)
			_, _ = end.Write(answerWith(retryRandom))
			if _, err := ReadHello(end); err == nil {
				again <- time.Since(start)
			}
			close(again)
		}))
		_, _ = io.ReadFull(client, make([]byte, len(answerWith(retryRandom))))
		_, _ = client.Write(hello)
		if took, ok := <-again; !ok || took > 0 {
			t.Errorf("the second ClientHello came %v, after %v", ok, took)
		}
		_ = client.Close()
		all.Wait()
	})
}

func TestWhoWaitsForATurnEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancelled bool
		want      egress.Reason
		after     time.Duration
	}{"with its context": {true, "", 0}, "when its time is up": {false, egress.Slow, FirstWords}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				turns := make(Turns) // of which there is none
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				shut := make(chan struct{})
				start, done := time.Now(), make(chan error, 1)
				go func() {
					done <- turns.take(ctx, func() { close(shut) }, func() error { t.Error("it got one"); return nil })
				}()
				synctest.Wait()
				if c.cancelled {
					cancel()
				}
				err := <-done
				<-shut
				if took := time.Since(start); err == nil || Refused(err) != c.want || took != c.after {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// The name of a host is kept for as long as its connection, and as what was
// denied: what it stood in is not.
func TestAHostDoesNotKeepTheLineThatItStoodIn(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"example.com", "example.com:443"} {
		a, err := parseAuthority(line)
		if err != nil || a.host != "example.com" {
			t.Fatalf("%+v, %v", a, err)
		}
		if unsafe.StringData(a.host) == unsafe.StringData(line) {
			t.Errorf("the host of %s is a part of it", line)
		}
	}
}
