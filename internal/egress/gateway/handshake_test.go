package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// saying is a handshake message of a server in one record.
func saying(kind byte, body ...byte) []byte {
	m := append([]byte{kind, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{recordHandshake, 3, 3}, vec(2, m...)...)
}

// answerWith is a ServerHello with this random.
func answerWith(random []byte) []byte {
	body := append([]byte{3, 3}, random...)
	body = append(body, 0, 0x13, 1, 0)
	return saying(messageAnswer, append(body, vec(2, append(ext(43, []byte{3, 4}), ext(51, []byte{0, 24})...)...)...)...)
}

// inRecordsOf cuts a record into shorter ones.
func inRecordsOf(n int, record []byte) []byte {
	var out []byte
	for body := record[recordHeaderLen:]; len(body) > 0; body = body[min(n, len(body)):] {
		out = append(append(out, record[:3]...), vec(2, body[:min(n, len(body))]...)...)
	}
	return out
}

// A server may ask for a second ClientHello, and believe the name in it.
func TestASecondClientHelloNamesTheSameHost(t *testing.T) {
	t.Parallel()
	hello := func(name string) []byte { return inOne(message(sni(name))) }
	good, evil := hello("example.com"), hello("evil.example")
	retry, answer := answerWith(retryRandom), answerWith(bytes.Repeat([]byte{7}, 32))
	change, data := []byte(more), append([]byte{recordData, 3, 3}, vec(2, bytes.Repeat([]byte{0x16}, 300)...)...)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name   string
		early  []byte // what the client says before it hears of the server
		server []byte // after the first ClientHello
		second []byte // what the client says then
		sent   []byte // to the server after the first ClientHello
		want   egress.Reason
	}{
		{name: "the same name", server: retry, second: good, sent: good},
		{name: "the same name in another spelling, and a change of ciphers before it", server: join(retry, change), second: join(change, hello("EXAMPLE.com.")), sent: join(change, hello("EXAMPLE.com."))},
		{name: "early data that is refused", early: data, server: retry, second: join(data, good), sent: join(data, data, good)},
		{name: "an alert, and nothing more", server: retry, second: []byte{recordAlert, 3, 3, 0, 2, 2, 47}, sent: []byte{recordAlert, 3, 3, 0, 2, 2, 47}},
		{name: "another name", server: retry, second: evil, want: egress.OtherHost},
		{name: "another name after a change of ciphers", server: retry, second: join(change, evil), sent: change, want: egress.OtherHost},
		{name: "another name after early data", early: data, server: retry, second: evil, sent: data, want: egress.OtherHost},
		{name: "another name after an alert", server: retry, second: join([]byte{recordAlert, 3, 3, 0, 2, 1, 0}, evil), sent: []byte{recordAlert, 3, 3, 0, 2, 1, 0}, want: egress.OtherHost},
		{name: "another name before the server has said a word", early: evil, want: egress.OtherHost},
		{name: "another name in many records", server: retry, second: inRecordsOf(1, evil), want: egress.OtherHost},
		{name: "another name after a retry in many records", server: inRecordsOf(1, retry), second: evil, want: egress.OtherHost},
		{name: "another name after a retry that follows an alert and requests", server: join([]byte{recordAlert, 3, 3, 0, 2, 1, 112}, saying(messageRequest), saying(messageRequest), retry), second: evil, want: egress.OtherHost},
		{name: "another name the third time", server: join(retry, retry), second: join(good, evil), sent: good, want: egress.OtherHost},
		{name: "no name", server: retry, second: inOne(message(ext(43, nil))), want: egress.NoServerName},
		{name: "a hidden name", server: retry, second: inOne(message(sni("example.com"), ext(0xfe0d, nil))), want: egress.Encrypted},
		{name: "another message", server: retry, second: saying(11), want: egress.BadTLS},
		{name: "no record", server: retry, second: []byte("GET / HTTP/1.1\r\n"), want: egress.BadTLS},
		{name: "what is longer than a record", server: retry, second: []byte{recordData, 3, 3, 0xff, 0xff}, want: egress.BadTLS},
		{name: "after the answer nothing is read any more", server: answer, second: join(evil, []byte("GET")), sent: join(evil, []byte("GET"))},
		{name: "nor after the answer to the second", server: join(retry, answer), second: join(good, saying(20), evil), sent: join(good, saying(20), evil)},
		{name: "a server that speaks something else is told nothing more", server: []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), second: []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), want: egress.Protocol},
		{name: "not a byte, and not as TLS either", server: []byte("220 hello\r\n"), second: data[:1], want: egress.Protocol},
		{name: "nor if it does so only after an alert", server: []byte("\x15\x03\x03\x00\x02\x01\x00SSH-2.0-x\r\n"), second: good, want: egress.Protocol},
		{name: "but a client that says nothing more hears it out", server: []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{name: "a server that never comes to its answer", server: inOne(append([]byte{messageAnswer, 0, 0xf0, 0, 3, 3}, append(bytes.Clone(retryRandom), make([]byte, 60_000)...)...)), second: good, want: egress.BadTLS},
		{name: "nor when the server has certificates before all", server: saying(11, 1, 2, 3), second: evil, sent: evil},
	} {
		for _, mode := range []string{"router", "proxy"} {
			t.Run(c.name+" through the "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var got bytes.Buffer
					var server sync.WaitGroup
					dial := func(context.Context, netip.AddrPort) (net.Conn, error) {
						near, end := pipe()
						server.Go(func() {
							defer end.Close()
							if _, err := ReadHello(end); err != nil {
								t.Errorf("the first: %v", err)
							}
							server.Go(func() { _, _ = end.Write(c.server) })
							_, _ = io.Copy(&got, end)
						})
						return near, nil
					}
					var tally egress.Tally
					var pins Pins
					at := netip.MustParseAddr("203.0.113.1")
					pins.Pin("example.com", false, []netip.Addr{at}, MaxTTL, time.Now())
					serve := func(ctx context.Context, conn net.Conn) {
						NewRouter(RouterOptions{Policy: policyOf(t, "example.com", "evil.example"), Pins: &pins, Denials: &tally, Dial: dial}).Serve(ctx, conn, netip.AddrPortFrom(at, 443))
					}
					before := ""
					if mode == "proxy" {
						lookup := func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{at}, nil }
						serve = NewProxy(ProxyOptions{Policy: policyOf(t, "example.com", "evil.example"), Denials: &tally, Lookup: lookup, Dial: dial}).Serve
						before = "CONNECT example.com:443 HTTP/1.1\r\n\r\n"
					}
					client, near := pipe()
					server.Go(func() { serve(t.Context(), near) })
					said := make(chan struct{})
					server.Go(func() {
						defer close(said)
						_, _ = client.Write([]byte(before))
						_, _ = client.Write(good)
						_, _ = client.Write(c.early)
					})
					var back bytes.Buffer
					server.Go(func() { _, _ = io.Copy(&back, client) })
					<-said
					synctest.Wait() // all that the server has said so far was passed on
					_, _ = client.Write(c.second)
					_ = client.CloseWrite()
					server.Wait()
					if !bytes.Equal(got.Bytes(), c.sent) {
						t.Errorf("the server got %q, want %q", got.Bytes(), c.sent)
					}
					if c.want == "" && !bytes.HasSuffix(back.Bytes(), c.server) {
						t.Errorf("the client got %q, want %q", back.Bytes(), c.server)
					}
					told, _ := tally.Denied()
					if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || told[0].Reason != c.want) {
						t.Errorf("denied %+v, want %q", told, c.want)
					}
				})
			})
		}
	}
}

// What is kept of a server that does not come to its answer is bounded.
func TestAServerThatDoesNotAnswerForGoodIsLeft(t *testing.T) {
	t.Parallel()
	long := append([]byte{messageAnswer, 0, 0xf0, 0, 3, 3}, append(bytes.Clone(retryRandom), make([]byte, 60_000)...)...)
	var h handshake
	if err := h.down(io.Discard, bytes.NewReader(inOne(long))); reasonOf(err, "") != egress.BadTLS || h.settled.Load() {
		t.Errorf("%v, settled %v", err, h.settled.Load())
	}
	// One that ends before has not answered either.
	var got bytes.Buffer
	half := answerWith(retryRandom)[:20]
	if err := h.down(&got, bytes.NewReader(half)); err == nil || h.settled.Load() || !bytes.Equal(got.Bytes(), half) {
		t.Errorf("%v, settled %v, passed on %q", err, h.settled.Load(), got.Bytes())
	}
}

// Go's own client and server, over real sockets, with a retry and without.
func TestRealHandshakesWithARetryGetThroughTheRouter(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort("203.0.113.1:443")
	for name, only := range map[string]tls.CurveID{"a retry": tls.CurveP384, "no retry": tls.X25519} {
		sample := httptest.NewUnstartedServer(nil)
		sample.StartTLS()
		cert := sample.TLS.Certificates[0]
		sample.Close()
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, CurvePreferences: []tls.CurveID{only}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var all sync.WaitGroup
		all.Go(func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		})
		front, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer front.Close()
		var pins Pins
		pins.Pin("example.com", false, []netip.Addr{at.Addr()}, MaxTTL, time.Now())
		var tally egress.Tally
		router := NewRouter(RouterOptions{Policy: policyOf(t, "example.com"), Pins: &pins, Denials: &tally, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}})
		all.Go(func() {
			c, err := front.Accept()
			if err == nil {
				router.Serve(t.Context(), c, at)
			}
		})
		c, err := tls.Dial("tcp", front.Addr().String(), &tls.Config{ServerName: "example.com", InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384}}) //nolint:gosec // it is ours
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const size = 4 << 20
		all.Go(func() {
			_, _ = io.Copy(c, strings.NewReader(strings.Repeat("x", size)))
			_ = c.CloseWrite()
		})
		if n, err := io.Copy(io.Discard, c); n != size || err != nil {
			t.Errorf("%s: %d bytes came back: %v", name, n, err)
		}
		_ = c.Close()
		all.Wait()
		if told, _ := tally.Denied(); len(told) > 0 {
			t.Errorf("%s: denied %+v", name, told)
		}
	}
}

func FuzzUnanswered(f *testing.F) {
	f.Add(answerWith(retryRandom)[recordHeaderLen:])
	f.Add(answerWith(make([]byte, 32))[recordHeaderLen:])
	f.Add(append(saying(messageRequest)[recordHeaderLen:], answerWith(retryRandom)[recordHeaderLen:]...))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, waits := unanswered(in)
		// However it is cut into records, it means the same.
		var rest []byte
		cut := true
		for i := 0; i < len(in) && cut; i++ {
			rest, cut = unanswered(append(bytes.Clone(rest), in[i]))
		}
		if waits != cut {
			t.Errorf("whole: %v, in pieces: %v", waits, cut)
		}
	})
}
