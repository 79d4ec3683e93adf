package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

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
		{name: "a tunnel to a host, with TLS inside", words: connect + hello + more, dialed: []string{"203.0.113.1:443"}, sent: hello + more, status: "200"},
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

// A name that leads to metadata is told with the address, so that it does not
// get lost among other names.
func TestAProxyTellsWhereARefusedNameLeads(t *testing.T) {
	t.Parallel()
	metadata := netip.MustParseAddr("169.254.169.254")
	var tally egress.Tally
	p := NewProxy(ProxyOptions{Policy: policyOf(t, "*.example.com"), Denials: &tally, Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{metadata}, nil }})
	for i := range egress.MaxKinds {
		tally.Deny(egress.Denial{Host: fmt.Sprintf("n%d.evil.example", i), Port: 443, Reason: egress.Host})
	}
	talk(p.Serve, []byte("CONNECT rebind.example.com:443 HTTP/1.1\r\n\r\n"))
	told, _ := tally.Denied()
	if !slices.ContainsFunc(told, func(d egress.Denial) bool {
		return d.Host == "rebind.example.com" && d.Addr == metadata && d.Reason == egress.Protected
	}) {
		t.Errorf("%d were told, and not that", len(told))
	}
}
