package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// more is a record that follows a ClientHello.
const more = "\x14\x03\x03\x00\x01\x01"

const get = "GET /secret-path HTTP/1.1\r\nHost: example.com\r\n\r\n"

func TestRouter(t *testing.T) {
	t.Parallel()
	hello := func(name string) string { return string(inOne(message(sni(name)))) }
	other := strings.Replace(get, "example.com", "b.example", 1)
	const evilGet = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	for _, c := range []struct {
		name  string
		to    string
		words string
		sent  string        // to the server; "" = nothing, and no dialling
		want  egress.Reason // of the denial, "" = none
	}{
		{name: "TLS to the pinned address", to: "203.0.113.1:443", words: hello("Example.com") + more, sent: hello("Example.com") + more},
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
		{name: "a URL without a port means 80, wherever it is sent (M32)", to: "203.0.113.1:8080", words: "GET http://c.example/ HTTP/1.1\r\nHost: c.example:80\r\n\r\n", want: egress.OtherHost},
		{name: "so does one without a port in Host (M32)", to: "203.0.113.1:8080", words: "GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n", want: egress.OtherHost},
		{name: "a URL with the port", to: "203.0.113.1:8080", words: "GET http://c.example:8080/ HTTP/1.1\r\nHost: c.example:8080\r\n\r\n", sent: "GET / HTTP/1.1\r\nHost: c.example:8080\r\n\r\n"},
		{name: "HTTP naming an address", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: 203.0.113.1\r\n\r\n", want: egress.Address},
		{name: "HTTP naming another address", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: 203.0.113.7\r\n\r\n", want: egress.OtherHost},
		{name: "a second Host on one connection", to: "203.0.113.1:80", words: get + "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", sent: get, want: egress.OtherHost},
		{name: "a second Host that is allowed, at the address of the first (M32)", to: "203.0.113.1:80", words: get + other, sent: get, want: egress.OtherHost},
		{name: "a second request hidden in the body of the first", to: "203.0.113.1:80", words: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n" + other,
			sent: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n", want: egress.OtherHost},
		{name: "a request with a body is the last of its connection", to: "203.0.113.1:80", words: "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nabcd" + get,
			sent: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd"},
		{name: "a request in the body of one that servers expect none of", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: " + strconv.Itoa(len(evilGet)) + "\r\n\r\n" + evilGet,
			sent: "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: " + strconv.Itoa(len(evilGet)) + "\r\nConnection: close\r\n\r\n" + evilGet},
		{name: "the same in chunks", to: "203.0.113.1:80", words: "GET / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(evilGet)), 16) + "\r\n" + evilGet + "\r\n0\r\n\r\n" + evilGet,
			sent: "GET / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + strconv.FormatInt(int64(len(evilGet)), 16) + "\r\n" + evilGet + "\r\n0\r\n\r\n"},
		{name: "whether a body comes is not the server's to say", to: "203.0.113.1:80", words: "POST / HTTP/1.1\r\nHost: example.com\r\nexpect: 100-Continue\r\nContent-Length: 4\r\n\r\nabcd",
			sent: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd"},
		{name: "an expectation that nobody knows", to: "203.0.113.1:80", words: "POST / HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue, x\r\nContent-Length: 4\r\n\r\nabcd", want: egress.BadHTTP},
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
				pins.Pin("c.example", false, []netip.Addr{netip.MustParseAddr("203.0.113.1")}, MaxTTL, now)
				r := NewRouter(RouterOptions{Policy: policyOf(t, "example.com", "b.example", "c.example:8080"), Pins: &pins, Denials: &tally, Dial: f.dial})
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

// Nor does a server that has ended and takes nothing more, however much is said.
func TestAServerThatHasEndedHoldsNoConnection(t *testing.T) {
	t.Parallel()
	answer := answerWith(make([]byte, 32))
	for name, c := range map[string]struct{ first, answer []byte }{
		"TLS":  {inOne(message(sni("example.com"))), answer},
		"HTTP": {[]byte("POST / HTTP/1.1\r\nHost: example.com:443\r\nContent-Length: 1000000\r\n\r\n"), []byte("HTTP/1.1 200 OK\r\n\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				serve := routerTo(t, &egress.Tally{}, func(end *halfPipe) {
					_, _ = end.Read(make([]byte, 4096))
					_, _ = end.Write(c.answer)
					_ = end.CloseWrite()
				})
				client, near := pipe()
				defer client.Close()
				done := make(chan struct{})
				go func() { serve(t.Context(), near); close(done) }()
				_, _ = client.Write(c.first)
				_, _ = io.ReadFull(client, make([]byte, len(c.answer)))
				go flood(client)
				start := time.Now()
				<-done
				if took := time.Since(start); took > Linger {
					t.Errorf("it took %v", took)
				}
			})
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

// BenchmarkRouter sends over loopback, by itself and through a Router, so that
// the two can be compared in one run.
func BenchmarkRouter(b *testing.B) {
	const size = 64 << 20
	greeting := string(answerWith(make([]byte, 32))) // after which nothing is read any more
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
				_, _ = io.WriteString(c, greeting)
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
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, len(greeting)))
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

// Whatever a program says, only the allowed host's checked address is dialled,
// and by another reader's reading only that host is named there.
func FuzzServe(f *testing.F) {
	hello := string(inOne(message(sni("example.com"))))
	f.Add([]byte("CONNECT example.com:443 HTTP/1.1\r\n\r\n" + hello + more))
	f.Add([]byte("CONNECT example.com:443 HTTP/1.1\r\n\r\n" + hello + more + hello))
	f.Add([]byte("CONNECT example.com:80 HTTP/1.1\r\n\r\n" + get + "POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + get))
	f.Add([]byte("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n" + get))
	f.Add([]byte(get + strings.Replace(get, "example.com", "evil.example", 1)))
	f.Add([]byte(hello))
	policy := policyOf(f, "example.com")
	checked := netip.MustParseAddr("203.0.113.1")
	lookup := func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{checked}, nil }
	f.Fuzz(func(t *testing.T, in []byte) {
		var pins Pins
		pins.Pin("example.com", false, []netip.Addr{checked}, MaxTTL, time.Now())
		for _, port := range []uint16{0, 80} {
			var server far
			tally := &egress.Tally{}
			serve := NewProxy(ProxyOptions{Policy: policy, Denials: tally, Lookup: lookup, Dial: server.dial}).Serve
			if port != 0 {
				r := NewRouter(RouterOptions{Policy: policy, Pins: &pins, Denials: tally, Dial: server.dial})
				serve = func(ctx context.Context, c net.Conn) { r.Serve(ctx, c, netip.AddrPortFrom(checked, port)) }
			}
			talk(serve, in)
			server.wg.Wait()
			for _, to := range server.dialed {
				if to != "203.0.113.1:80" && to != "203.0.113.1:443" {
					t.Fatalf("dialled %s", to)
				}
			}
			got := server.got.Bytes()
			if len(got) == 0 {
				continue
			}
			if got[0] == recordHandshake {
				if name, ok := stdName(got); ok && !strings.EqualFold(strings.TrimSuffix(name, "."), "example.com") {
					t.Fatalf("%q was asked for", name)
				}
				continue
			}
			for r := bufio.NewReader(bytes.NewReader(got)); ; {
				req, err := http.ReadRequest(r)
				if err != nil {
					break
				}
				if a, err := parseAuthority(req.Host); err != nil || a.host != "example.com" {
					t.Fatalf("%q was asked for in %q", req.Host, got)
				}
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					break
				}
			}
		}
	})
}
