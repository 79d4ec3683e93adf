package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// far is the other end of all dialling: whatever address was checked, its
// server is on a pipe, keeps what it is sent, and answers when it has ended.
type far struct {
	mu     sync.Mutex
	dialed []string
	got    bytes.Buffer
	down   bool
	wg     sync.WaitGroup
}

// halfPipe is one end of a pipe that can be closed for writing alone.
type halfPipe struct {
	net.Conn
	eof  chan struct{} // closed by the peer's CloseWrite
	peer chan struct{}
	once sync.Once
}

func pipe() (a, b *halfPipe) {
	x, y := net.Pipe()
	ex, ey := make(chan struct{}), make(chan struct{})
	return &halfPipe{Conn: x, eof: ex, peer: ey}, &halfPipe{Conn: y, eof: ey, peer: ex}
}

func (h *halfPipe) CloseWrite() error { h.once.Do(func() { close(h.peer) }); return nil }

func (h *halfPipe) Close() error { _ = h.CloseWrite(); return h.Conn.Close() }

func (h *halfPipe) Read(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := h.Conn.Read(b)
		done <- result{n, err}
	}()
	ended := false
	select {
	case <-h.eof:
		_ = h.Conn.SetReadDeadline(time.Unix(1, 0))
		ended = true
	case r := <-done:
		done <- r
	}
	r := <-done
	if r.err != nil && (ended || errors.Is(r.err, io.ErrClosedPipe)) {
		r.err = io.EOF
	}
	return r.n, r.err
}

func (f *far) dial(_ context.Context, to netip.AddrPort) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialed = append(f.dialed, to.String())
	if f.down {
		return nil, errors.New("down")
	}
	near, end := pipe()
	f.wg.Go(func() {
		var got bytes.Buffer
		_, _ = io.Copy(&got, end)
		f.mu.Lock()
		f.got.Write(got.Bytes())
		f.mu.Unlock()
		_, _ = io.WriteString(end, "the answer")
		_ = end.Close()
	})
	return near, nil
}

// talk hands one connection to serve, says words, ends, and gives what came
// back.
func talk(serve func(context.Context, net.Conn), words []byte) string {
	client, near := pipe()
	var wg sync.WaitGroup
	wg.Go(func() { serve(context.Background(), near) })
	wg.Go(func() {
		_, _ = client.Write(words)
		_ = client.CloseWrite()
	})
	back, _ := io.ReadAll(client)
	_ = client.Close()
	wg.Wait()
	return string(back)
}

const get = "GET /secret-path HTTP/1.1\r\nHost: example.com\r\n\r\n"

func TestRouter(t *testing.T) {
	t.Parallel()
	hello := func(name string) string { return string(inOne(message(sni(name)))) }
	other := strings.Replace(get, "example.com", "b.example", 1)
	for _, c := range []struct {
		name  string
		to    string
		words string
		sent  string        // to the server; "" = nothing, and no dialling
		want  egress.Reason // of the denial, "" = none
	}{
		{name: "TLS to the pinned address", to: "203.0.113.1:443", words: hello("Example.com") + "more", sent: hello("Example.com") + "more"},
		{name: "HTTP to the pinned address", to: "203.0.113.1:80", words: get + get, sent: get + get},
		{name: "HTTP with the port in Host", to: "203.0.113.1:80", words: strings.Replace(get, ".com", ".com:80", 1), sent: strings.Replace(get, ".com", ".com:80", 1)},
		{name: "TLS to an address that was resolved for another name (M10)", to: "203.0.113.2:443", words: hello("example.com"), want: egress.Unpinned},
		{name: "TLS to an address that nobody resolved (M10)", to: "198.51.100.20:443", words: hello("example.com"), want: egress.Unpinned},
		{name: "TLS to an address whose pin has ended (M29)", to: "203.0.113.9:443", words: hello("example.com"), want: egress.Unpinned},
		{name: "TLS naming a denied host at the address of an allowed one", to: "203.0.113.1:443", words: hello("evil.example"), want: egress.Host},
		{name: "TLS on a port that the host has no rule for (M28)", to: "203.0.113.1:8443", words: hello("example.com"), want: egress.Port},
		{name: "TLS to metadata, pinned or not", to: "169.254.169.254:443", words: hello("example.com"), want: egress.Protected},
		{name: "TLS without a name", to: "203.0.113.1:443", words: string(inOne(message(ext(43, nil)))), want: egress.NoServerName},
		{name: "TLS with a hidden name", to: "203.0.113.1:443", words: string(inOne(message(sni("example.com"), ext(0xfe0d, nil)))), want: egress.Encrypted},
		{name: "TLS that ends in its hello", to: "203.0.113.1:443", words: hello("example.com")[:60], want: egress.BadTLS},
		{name: "HTTP naming a denied host", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", want: egress.Host},
		{name: "HTTP naming another port (M32)", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: example.com:443\r\n\r\n", want: egress.OtherHost},
		{name: "HTTP naming an address", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: 203.0.113.1\r\n\r\n", want: egress.Address},
		{name: "HTTP naming another address", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: 203.0.113.7\r\n\r\n", want: egress.OtherHost},
		{name: "a second Host on one connection", to: "203.0.113.1:80", words: get + "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", sent: get, want: egress.OtherHost},
		{name: "a second Host that is allowed, at the address of the first (M32)", to: "203.0.113.1:80", words: get + other, sent: get, want: egress.OtherHost},
		{name: "a second request hidden in the body of the first", to: "203.0.113.1:80", words: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n" + other,
			sent: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n", want: egress.OtherHost},
		{name: "a second request with both lengths", to: "203.0.113.1:80", words: get + "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", sent: get, want: egress.BadHTTP},
		{name: "CONNECT", to: "203.0.113.1:80", words: "CONNECT example.com:80 HTTP/1.1\r\n\r\n", want: egress.Upgrade},
		{name: "CONNECT as a second request", to: "203.0.113.1:80", words: get + "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n", sent: get, want: egress.Upgrade},
		{name: "h2c", to: "203.0.113.1:80", words: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", want: egress.Upgrade},
		{name: "neither TLS nor HTTP", to: "203.0.113.1:443", words: "\x00\x00", want: egress.Protocol},
		{name: "SSL 2", to: "203.0.113.1:443", words: "\x80\x2e\x01\x03\x01", want: egress.Protocol},
		{name: "not a word is no attempt", to: "203.0.113.1:443"},
		{name: "a mapped address is the address", to: "[::ffff:203.0.113.1]:443", words: hello("example.com"), sent: hello("example.com")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var f far
				var tally egress.Tally
				var pins Pins
				now := time.Now()
				pins.Pin("example.com", false, []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("169.254.169.254")}, MaxTTL, now)
				pins.Pin("example.com", false, []netip.Addr{netip.MustParseAddr("203.0.113.9")}, MinTTL, now.Add(-MinTTL-Grace))
				pins.Pin("b.example", false, []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")}, MaxTTL, now)
				r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com", "b.example"), Pins: &pins, Denials: &tally, Dial: f.dial})
				to := netip.MustParseAddrPort(c.to)
				back := talk(func(ctx context.Context, conn net.Conn) { r.Serve(ctx, conn, to) }, []byte(c.words))
				f.wg.Wait()
				if got := f.got.String(); got != c.sent {
					t.Errorf("the server got %q, want %q", got, c.sent)
				}
				if dialed := len(f.dialed) > 0; dialed != (c.sent != "") || dialed && f.dialed[0] != netip.AddrPortFrom(to.Addr().Unmap(), to.Port()).String() {
					t.Errorf("dialled %v", f.dialed)
				}
				if c.sent != "" && c.want == "" && back != "the answer" {
					t.Errorf("the client got %q", back)
				}
				told, _ := tally.Denied()
				switch {
				case c.want == "" && len(told) > 0, c.want != "" && (len(told) != 1 || told[0].Reason != c.want || told[0].Port != to.Port()):
					t.Errorf("denied %+v, want %q", told, c.want)
				}
				if s := fmt.Sprintf("%+v", told) + back; strings.Contains(s, "secret-path") {
					t.Errorf("%s tells payload", s)
				}
				if len(r.slots) != 0 {
					t.Error("a slot is still taken")
				}
			})
		})
	}
}

func TestARefusalIsToldInTheClientsOwnWords(t *testing.T) {
	t.Parallel()
	var tally egress.Tally
	var f far
	r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &Pins{}, Denials: &tally, Dial: f.dial})
	to := netip.MustParseAddrPort("203.0.113.1:443")
	serve := func(ctx context.Context, c net.Conn) { r.Serve(ctx, c, to) }
	if got := talk(serve, inOne(message(sni("evil.example")))); got != string(denied) {
		t.Errorf("TLS is told %q", got)
	}
	got := talk(serve, []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
	if err != nil || resp.StatusCode != http.StatusForbidden || resp.Header.Get("X-Sandboxio-Reason") != "host" {
		t.Fatalf("HTTP is told %q, %v", got, err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "no rule names this host") || strings.Contains(string(body), "evil") {
		t.Errorf("HTTP is told %q", body)
	}
}

func TestWhoDoesNotSpeakInTimeIsRefused(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"nothing": "", "half a hello": string(inOne(message(sni("example.com")))[:40]), "half a request": "GET / HTTP/1.1\r\nHost: exam"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tally egress.Tally
				var f far
				r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &Pins{}, Denials: &tally, Dial: f.dial})
				client, near := net.Pipe()
				go func() { _, _ = client.Write([]byte(words)) }()
				start := time.Now()
				r.Serve(t.Context(), near, netip.MustParseAddrPort("203.0.113.1:443"))
				if took := time.Since(start); took < FirstWords || took > FirstWords+tellTimeout {
					t.Errorf("it took %v", took)
				}
				if told, _ := tally.Denied(); len(told) != 1 || told[0].Reason != egress.Slow || len(f.dialed) > 0 {
					t.Errorf("denied %+v, dialled %v", told, f.dialed)
				}
				_ = client.Close()
			})
		})
	}
}

// A client that never ends does not hold its place for ever once its server
// has, and the end of the context ends everything at once.
func TestEveryConnectionEnds(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var pins Pins
			pins.Pin("example.com", false, []netip.Addr{netip.MustParseAddr("203.0.113.1")}, MaxTTL, time.Now())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dial := func(context.Context, netip.AddrPort) (net.Conn, error) {
				near, end := net.Pipe()
				go func() {
					_, _ = io.CopyN(io.Discard, end, int64(len(get)))
					if !cancelled {
						_ = end.Close()
					}
				}()
				return near, nil
			}
			r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &pins, Denials: &egress.Tally{}, Dial: dial})
			client, near := net.Pipe()
			go func() { _, _ = client.Write([]byte(get)) }()
			done := make(chan struct{})
			start := time.Now()
			go func() { r.Serve(ctx, near, netip.MustParseAddrPort("203.0.113.1:80")); close(done) }()
			synctest.Wait()
			if cancelled {
				cancel()
			}
			<-done
			if took := time.Since(start); took > Linger || cancelled && took > 0 {
				t.Errorf("it took %v", took)
			}
			_ = client.Close()
		})
	}
}

func TestBeyondTheCapConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tally egress.Tally
		r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &Pins{}, Denials: &tally, Dial: new(far).dial, Conns: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			client, near := net.Pipe()
			defer client.Close()
			wg.Go(func() { r.Serve(ctx, near, netip.MustParseAddrPort("203.0.113.1:443")) })
		}
		synctest.Wait()
		if told, _ := tally.Denied(); len(told) != 1 || told[0].Reason != egress.Capacity || told[0].Count != 3 {
			t.Errorf("denied %+v", told)
		}
		cancel()
		wg.Wait()
	})
}

// However many connections begin, few are kept in memory before they are whole,
// and those that wait get their turn.
func TestFirstWordsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tally egress.Tally
		r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &Pins{}, Denials: &tally, Dial: new(far).dial})
		var wg sync.WaitGroup
		for range maxReading + 10 {
			client, near := net.Pipe()
			defer client.Close()
			wg.Go(func() { r.Serve(t.Context(), near, netip.MustParseAddrPort("203.0.113.1:443")) })
		}
		synctest.Wait()
		if len(r.reading) != maxReading || len(r.slots) != maxReading+10 {
			t.Errorf("%d of %d are being read", len(r.reading), len(r.slots))
		}
		wg.Wait()
		if told, _ := tally.Denied(); len(told) != 1 || told[0].Reason != egress.Slow || told[0].Count != maxReading+10 {
			t.Errorf("denied %+v", told)
		}
	})
}

func TestProxy(t *testing.T) {
	t.Parallel()
	hello := string(inOne(message(sni("example.com"))))
	connect := "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"
	for _, c := range []struct {
		name   string
		words  string
		found  []string // by looking the name up
		dialed []string
		sent   string
		status string
		want   egress.Reason
	}{
		{name: "a tunnel to a host, with TLS inside", words: connect + hello + "more", dialed: []string{"203.0.113.1:443"}, sent: hello + "more", status: "200"},
		{name: "a tunnel to a host, with HTTP inside", words: "CONNECT example.com:80 HTTP/1.1\r\n\r\n" + get, dialed: []string{"203.0.113.1:80"}, sent: get, status: "200"},
		{name: "a tunnel to an address that a rule names, with anything inside", words: "CONNECT 198.51.100.9:22 HTTP/1.1\r\n\r\nSSH-2.0-x\r\n", dialed: []string{"198.51.100.9:22"}, sent: "SSH-2.0-x\r\n", status: "200"},
		{name: "plain HTTP", words: "GET http://example.com/a HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive\r\nProxy-Connection: keep-alive\r\n\r\n", dialed: []string{"203.0.113.1:80"},
			sent: "GET /a HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", status: "the"},
		{name: "plain HTTP, and more that goes nowhere", words: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", dialed: []string{"203.0.113.1:80"},
			sent: "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", status: "the"},
		{name: "a final dot is the same host (M02)", words: "CONNECT EXAMPLE.com.:443 HTTP/1.1\r\n\r\n" + hello, dialed: []string{"203.0.113.1:443"}, sent: hello, status: "200"},
		{name: "a tunnel to a denied host", words: "CONNECT evil.example:443 HTTP/1.1\r\n\r\n" + hello, status: "403", want: egress.Host},
		{name: "a tunnel to a port without a rule (M28)", words: "CONNECT example.com:22 HTTP/1.1\r\n\r\n", status: "403", want: egress.Port},
		{name: "a tunnel to an address without a rule (M10)", words: "CONNECT 203.0.113.1:443 HTTP/1.1\r\n\r\n" + hello, status: "403", want: egress.Address},
		{name: "a tunnel to metadata", words: "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", status: "403", want: egress.Protected},
		{name: "a tunnel to mapped metadata", words: "CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\n\r\n", status: "403", want: egress.Protected},
		{name: "TLS inside that names another host", words: connect + string(inOne(message(sni("b.example")))), dialed: []string{"203.0.113.1:443"}, status: "200", want: egress.OtherHost},
		{name: "HTTP inside that names another host", words: connect + "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", dialed: []string{"203.0.113.1:443"}, status: "200", want: egress.OtherHost},
		{name: "HTTP inside that names another host later", words: "CONNECT example.com:80 HTTP/1.1\r\n\r\n" + get + "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", dialed: []string{"203.0.113.1:80"}, sent: get, status: "200", want: egress.OtherHost},
		{name: "a hidden name inside", words: connect + string(inOne(message(sni("example.com"), ext(0xfe0d, nil)))), dialed: []string{"203.0.113.1:443"}, status: "200", want: egress.Encrypted},
		{name: "neither TLS nor HTTP inside", words: connect + "\x00", dialed: []string{"203.0.113.1:443"}, status: "200", want: egress.Protocol},
		{name: "a tunnel inside the tunnel", words: connect + connect, dialed: []string{"203.0.113.1:443"}, status: "200", want: egress.Upgrade},
		{name: "a name that leads to a private address", words: connect, found: []string{"10.0.0.1"}, status: "403", want: egress.Protected},
		{name: "a name that leads to a private address beside a public one", words: connect, found: []string{"203.0.113.1", "10.0.0.1"}, status: "403", want: egress.Protected},
		{name: "a name that leads to a mapped private address", words: connect, found: []string{"::ffff:10.0.0.1"}, status: "403", want: egress.Protected},
		{name: "a name that leads to a mapped address", words: connect + hello, found: []string{"::ffff:203.0.113.5"}, dialed: []string{"203.0.113.5:443"}, sent: hello, status: "200"},
		{name: "a name that leads to a private address that a rule names", words: "CONNECT example.com:443 HTTP/1.1\r\n\r\n" + hello, found: []string{"10.9.0.1"}, dialed: []string{"10.9.0.1:443"}, sent: hello, status: "200"},
		{name: "a name that leads nowhere", words: connect, found: []string{}, status: "502", want: egress.Unresolved},
		{name: "a request that is not addressed to a proxy", words: get, status: "400", want: egress.BadHTTP},
		{name: "h2c", words: "PRI * HTTP/2.0\r\n\r\n", status: "400", want: egress.Upgrade},
		{name: "TLS to the proxy itself", words: hello, status: "400", want: egress.BadHTTP},
		{name: "nothing is no attempt"},
		{name: "a tunnel that is never used is no attempt", words: connect, dialed: []string{"203.0.113.1:443"}, status: "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var f far
				var tally egress.Tally
				lookup := func(_ context.Context, name string) ([]netip.Addr, error) {
					if name != "example.com." {
						t.Errorf("looked up %q, which could be searched for", name)
					}
					if c.found == nil {
						c.found = []string{"203.0.113.1"}
					}
					var out []netip.Addr
					for _, s := range c.found {
						out = append(out, netip.MustParseAddr(s))
					}
					return out, nil
				}
				p := NewProxy(ProxyOptions{Policy: policyOf(t, "example.com", "b.example", "198.51.100.0/24:22", "10.9.0.0/24:443"), Denials: &tally, Lookup: lookup, Dial: f.dial})
				back := talk(p.Serve, []byte(c.words))
				f.wg.Wait()
				if diff := cmp.Diff(c.dialed, f.dialed); diff != "" {
					t.Error(diff)
				}
				if got := f.got.String(); got != c.sent {
					t.Errorf("the server got %q, want %q", got, c.sent)
				}
				if status := strings.TrimPrefix(back, "HTTP/1.1 "); !strings.HasPrefix(status, c.status) || c.status == "" && back != "" {
					t.Errorf("the client got %q, want %s", back, c.status)
				}
				if c.sent != "" && c.want == "" && !strings.HasSuffix(back, "the answer") {
					t.Errorf("the client got %q", back)
				}
				told, _ := tally.Denied()
				if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || told[0].Reason != c.want) {
					t.Errorf("denied %+v, want %q", told, c.want)
				}
			})
		})
	}
}

func TestAProxyTriesEveryCheckedAddress(t *testing.T) {
	t.Parallel()
	f := far{down: true}
	var tally egress.Tally
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")}, nil
	}
	p := NewProxy(ProxyOptions{Policy: policyOf(t, "example.com"), Denials: &tally, Lookup: lookup, Dial: f.dial})
	if back := talk(p.Serve, []byte("CONNECT example.com:443 HTTP/1.1\r\n\r\n")); !strings.HasPrefix(back, "HTTP/1.1 502 ") || len(f.dialed) != 2 {
		t.Errorf("the client got %q, dialled %v", back, f.dialed)
	}
	if told, _ := tally.Denied(); len(told) != 1 || told[0].Reason != egress.Unreachable {
		t.Errorf("denied %+v", told)
	}
}

// Go's own client and server, TLS and HTTP/2 inside, over real sockets.
func TestRealClientsGetThroughTheProxy(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", fmt.Sprint(n))
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	plain := httptest.NewServer(server.Config.Handler)
	defer plain.Close()

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
	}
	dial := func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		at := server.Listener.Addr().String()
		if to.Port() == 80 {
			at = plain.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", at)
	}
	var tally egress.Tally
	p := NewProxy(ProxyOptions{Policy: policyOf(t, "example.com"), Denials: &tally, Lookup: lookup, Dial: dial})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.Serve(ctx, c) })
		}
	})
	defer wg.Wait()
	defer cancel()
	defer ln.Close()

	pool := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs //nolint:forcetypeassert // it is one
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: ln.Addr().String()}), ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: time.Minute}
	for _, at := range []string{"https://example.com/", "http://example.com/", "https://example.com/"} {
		resp, err := client.Post(at, "text/plain", io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(at, err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || n != size || resp.Header.Get("X-Got") != fmt.Sprint(size) {
			t.Errorf("%s: %d bytes, %s got, %v", at, n, resp.Header.Get("X-Got"), err)
		}
	}
	if _, err := client.Get("https://evil.example/"); err == nil || !strings.Contains(err.Error(), "Forbidden") { //nolint:bodyclose // there is none
		t.Errorf("a denied host: %v", err)
	}
	if told, _ := tally.Denied(); len(told) != 1 || told[0].Host != "evil.example" {
		t.Errorf("denied %+v", told)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// BenchmarkRouter sends over loopback, by itself and through a Router, so that
// the two can be compared in one run.
func BenchmarkRouter(b *testing.B) {
	const size = 64 << 20
	hello := inOne(message(sni("example.com")))
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	go func() {
		for {
			c, err := sink.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	to := netip.MustParseAddrPort("203.0.113.1:443")
	var pins Pins
	pins.Pin("example.com", false, []netip.Addr{to.Addr()}, MaxTTL, time.Now())
	router := NewRouter(RouterOptions{Policy: policyOf(b, "example.com"), Pins: &pins, Denials: &egress.Tally{},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", sink.Addr().String())
		}})
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer front.Close()
	go func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			go router.Serve(b.Context(), c, to)
		}
	}()
	connect := func(b *testing.B, at net.Addr) net.Conn {
		b.Helper()
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_, err = c.Write(hello)
		}
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	block := make([]byte, 256<<10)
	for name, at := range map[string]net.Addr{"by itself": sink.Addr(), "through the router": front.Addr()} {
		b.Run("transfer "+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				c := connect(b, at)
				for n := 0; n < size; n += len(block) {
					if _, err := c.Write(block); err != nil {
						b.Fatal(err)
					}
				}
				_ = c.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it is one
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
		b.Run("connection "+name, func(b *testing.B) {
			for b.Loop() {
				c := connect(b, at)
				_ = c.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it is one
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
	}
}
