package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

func TestReadHead(t *testing.T) {
	t.Parallel()
	const get = "GET / HTTP/1.1\r\n"
	const host = "Host: example.com\r\n"
	for _, c := range []struct {
		name string
		in   string
		to   authority
		sent string        // in origin form; "" = as it came
		want egress.Reason // of the refusal
	}{
		{name: "a request", in: get + host + "\r\n", to: authority{host: "example.com"}},
		{name: "an empty field", in: get + host + "X: \r\n\r\n", to: authority{host: "example.com"}},
		{name: "blanks around a value", in: get + "Host: \t example.com \r\n\r\n", to: authority{host: "example.com"}, sent: get + host + "\r\n"},
		{name: "a port in Host", in: get + "Host: Example.com.:8080\r\n\r\n", to: authority{host: "example.com", port: 8080}},
		{name: "a body of known length", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc", to: authority{host: "example.com"}},
		{name: "a body in chunks", in: "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", to: authority{host: "example.com"}},
		{name: "a URL that agrees with Host", in: "GET http://EXAMPLE.com:80/a?b HTTP/1.1\r\n" + host + "Proxy-Authorization: x\r\n\r\n", to: authority{host: "example.com", port: 80}, sent: "GET /a?b HTTP/1.1\r\n" + host + "\r\n"},
		{name: "a URL without a path", in: "GET http://example.com?b HTTP/1.1\r\n" + host + "\r\n", to: authority{host: "example.com", port: 80}, sent: "GET /?b HTTP/1.1\r\n" + host + "\r\n"},
		{name: "OPTIONS *", in: "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", to: authority{host: "example.com"}},
		{name: "HTTP/1.0", in: "GET / HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n\r\n", to: authority{host: "example.com"}},
		{name: "a URL that differs from Host (M32)", in: "GET http://example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", want: egress.BadHTTP},
		{name: "a URL whose port differs from Host's (M32)", in: "GET http://example.com/ HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", want: egress.BadHTTP},
		{name: "a URL with a user", in: "GET http://example.com@evil.example/ HTTP/1.1\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "a URL of another scheme", in: "GET https://example.com/ HTTP/1.1\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "no Host", in: get + "\r\n", want: egress.BadHTTP},
		{name: "two Hosts", in: get + host + "Host: evil.example\r\n\r\n", want: egress.BadHTTP},
		{name: "two equal Hosts", in: get + host + host + "\r\n", want: egress.BadHTTP},
		{name: "an empty Host", in: get + "Host:\r\n\r\n", want: egress.BadHTTP},
		{name: "a list of hosts", in: get + "Host: example.com, evil.example\r\n\r\n", want: egress.BadHTTP},
		{name: "a Host with a NUL (M03)", in: get + "Host: example.com\x00.evil.example\r\n\r\n", want: egress.BadHTTP},
		{name: "a Host with an odd address", in: get + "Host: 0x7f.1\r\n\r\n", want: egress.BadHTTP},
		{name: "a Host with port 0", in: get + "Host: example.com:0\r\n\r\n", want: egress.BadHTTP},
		{name: "a Host with a colon and no port", in: get + "Host: example.com:\r\n\r\n", want: egress.BadHTTP},
		{name: "a folded field", in: get + host + "X: a\r\n b\r\n\r\n", want: egress.BadHTTP},
		{name: "a folded Host", in: get + "Host: example.com\r\n .evil.example\r\n\r\n", want: egress.BadHTTP},
		{name: "a bare LF", in: "GET / HTTP/1.1\nHost: example.com\r\n\r\n", want: egress.BadHTTP},
		{name: "a bare LF at the end", in: get + host + "\n", want: egress.BadHTTP},
		{name: "a bare CR", in: get + "X: a\rHost: evil.example\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "two CRs", in: get + host + "\r\r\n", want: egress.BadHTTP},
		{name: "a blank before the colon", in: get + "Host : example.com\r\n\r\n", want: egress.BadHTTP},
		{name: "a field without a name", in: get + host + ": x\r\n\r\n", want: egress.BadHTTP},
		{name: "a line without a colon", in: get + host + "x\r\n\r\n", want: egress.BadHTTP},
		{name: "an empty line first", in: "\r\n" + get + host + "\r\n", want: egress.BadHTTP},
		{name: "two blanks in the request line", in: "GET  / HTTP/1.1\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "a tab in the request line", in: "GET\t/ HTTP/1.1\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "HTTP/0.9", in: "GET /\r\n", want: egress.BadHTTP},
		{name: "HTTP/1.2", in: "GET / HTTP/1.2\r\n" + host + "\r\n", want: egress.BadHTTP},
		{name: "the preface of HTTP/2", in: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", want: egress.Upgrade},
		{name: "an upgrade to h2c", in: get + host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n", want: egress.Upgrade},
		{name: "an upgrade that Connection does not name", in: get + host + "Upgrade: websocket\r\n\r\n", want: egress.Upgrade},
		{name: "Connection: upgrade alone", in: get + host + "Connection: keep-alive, Upgrade\r\n\r\n", want: egress.Upgrade},
		{name: "Connection takes Host out", in: get + host + "Connection: close, host\r\n\r\n", want: egress.BadHTTP},
		{name: "Connection takes the length out", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nConnection: content-length\r\n\r\nabc", want: egress.BadHTTP},
		{name: "both lengths", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", want: egress.BadHTTP},
		{name: "two lengths", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", want: egress.BadHTTP},
		{name: "a list of lengths", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 3, 3\r\n\r\n", want: egress.BadHTTP},
		{name: "a signed length", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: +3\r\n\r\n", want: egress.BadHTTP},
		{name: "a length in hexadecimal", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x3\r\n\r\n", want: egress.BadHTTP},
		{name: "a length that overflows", in: "POST / HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551619\r\n\r\n", want: egress.BadHTTP},
		{name: "another transfer encoding", in: "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", want: egress.BadHTTP},
		{name: "a transfer encoding with something before it", in: "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: \x0bchunked\r\n\r\n", want: egress.BadHTTP},
		{name: "chunks in HTTP/1.0", in: "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", want: egress.BadHTTP},
		{name: "an underscore for a hyphen", in: "POST / HTTP/1.1\r\n" + host + "Transfer_Encoding: chunked\r\n\r\n", want: egress.BadHTTP},
		{name: "trailing fields", in: "POST / HTTP/1.1\r\n" + host + "Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n", want: egress.BadHTTP},
		{name: "more fields than 256", in: get + host + strings.Repeat("a: b\r\n", 256) + "\r\n", want: egress.BadHTTP},
		{name: "a head of more than 32 KiB", in: get + host + "X: " + strings.Repeat("a", MaxHead) + "\r\n\r\n", want: egress.BadHTTP},
		{name: "a line that never ends", in: "GET /" + strings.Repeat("a", 2*MaxHead), want: egress.BadHTTP},
		{name: "CONNECT with a port", in: "CONNECT EXAMPLE.com.:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", to: authority{host: "example.com", port: 443}},
		{name: "CONNECT without Host", in: "CONNECT example.com:443 HTTP/1.0\r\n\r\n", to: authority{host: "example.com", port: 443}},
		{name: "CONNECT with a Host without a port", in: "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", to: authority{host: "example.com", port: 443}},
		{name: "CONNECT to two final dots (M02)", in: "CONNECT example.com..:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to a NUL (M03)", in: "CONNECT example.com\x00:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to a zero-width space (M03)", in: "CONNECT ex\u200bample.com:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT without a port", in: "CONNECT example.com HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to a URL", in: "CONNECT http://example.com:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to a bare IPv6 address", in: "CONNECT ::1:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to an address in octal", in: "CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT to an address as a number", in: "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT whose Host differs", in: "CONNECT example.com:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", want: egress.BadHTTP},
		{name: "CONNECT with a body", in: "CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", want: egress.BadHTTP},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReader(strings.NewReader(c.in))
			h, err := readHead(r)
			if c.want != "" {
				if reasonOf(err, "") != c.want {
					t.Fatalf("got %v, want %s", err, c.want)
				}
				return
			}
			if err != nil || h.to != c.to {
				t.Fatalf("got %+v, %v, want %+v", h, err, c.to)
			}
			if h.method == methodTunnel {
				return
			}
			var b bytes.Buffer
			if err := errors.Join(h.send(&b, false), h.body.send(&b, r, nil)); err != nil {
				t.Fatal(err)
			}
			want := c.sent
			if want == "" {
				want = c.in
			}
			if b.String() != want {
				t.Errorf("sent %q, want %q", b.String(), want)
			}
		})
	}
}

func TestALineEndsInOneWay(t *testing.T) {
	t.Parallel()
	for in, good := range map[string]bool{"abc\r\n": true, "\r\n": true, "abc\n": false, "a\rb\r\n": false, "abc\r\r\n": false, "a\x00b\r\n": false, "abcdef\r\n": false, "abc": false, "": false} {
		got, err := readLine(bufio.NewReaderSize(strings.NewReader(in), 16), 5)
		if (err == nil) != good || good && got+"\r\n" != in {
			t.Errorf("%q gives %q, %v", in, got, err)
		}
	}
}

func TestAuthoritiesThatAreAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"203.0.113.9:443": "203.0.113.9", "[2001:db8::1]:443": "2001:db8::1", "[::ffff:10.0.0.1]:443": "10.0.0.1",
		"[fe80::1%eth0]:443": "", "[::1": "", "[::1]x": "", "[203.0.113.9]:443": "", "[]:443": "", "[::1]:": "", "::1": "", "203.0.113.09:443": "", "203.0.113.9:0443": "",
	} {
		a, err := parseAuthority(in)
		if want == "" && err == nil || want != "" && (err != nil || a.addr.String() != want || a.host != "") {
			t.Errorf("parseAuthority(%q) = %+v, %v", in, a, err)
		}
	}
}

func TestChunksAreFollowedToTheLetter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		good bool
	}{
		"two chunks":                             {"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", true},
		"a size with leading zeros":              {"003\r\nabc\r\n0\r\n\r\n", true},
		"an extension":                           {"3;a=b\r\nabc\r\n0\r\n\r\n", false},
		"a blank after the size":                 {"3 \r\nabc\r\n0\r\n\r\n", false},
		"a sign":                                 {"+3\r\nabc\r\n0\r\n\r\n", false},
		"0x":                                     {"0x3\r\nabc\r\n0\r\n\r\n", false},
		"an underscore":                          {"1_0\r\nabc\r\n0\r\n\r\n", false},
		"no size":                                {"\r\nabc\r\n0\r\n\r\n", false},
		"a bare LF":                              {"3\nabc\r\n0\r\n\r\n", false},
		"more than the size says":                {"3\r\nabcd\r\n0\r\n\r\n", false},
		"a size that overflows":                  {"fffffffffffffffff\r\n", false},
		"a size beyond all bounds":               {"ffffffffffffffff\r\n", false},
		"trailing fields":                        {"0\r\nHost: evil.example\r\n\r\n", false},
		"an end in the middle":                   {"3\r\nab", false},
		"an end before the end":                  {"3\r\nabc\r\n", false},
		"a size that no line has room to repeat": {strings.Repeat("0", 100) + "\r\n\r\n", false},
	} {
		h := head{body: body{chunked: true}}
		var b bytes.Buffer
		r := bufio.NewReader(strings.NewReader(c.in + "GET"))
		if !c.good {
			r = bufio.NewReader(strings.NewReader(c.in))
		}
		err := h.body.send(&b, r, nil)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		if rest, _ := io.ReadAll(r); c.good && string(rest) != "GET" {
			t.Errorf("%s: %q remains", name, rest)
		}
	}
}

// What is passed on means the same to another reader: the same host, the same
// body, and the same end, so that no request hides in another one.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
	f.Add([]byte("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n"))
	f.Add([]byte("POST / HTTP/1.0\r\nHost: [2001:db8::1]:80\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabcd"))
	f.Add([]byte("OPTIONS * HTTP/1.1\r\nhost:a.b\r\nX:\r\n\r\n"))
	f.Add([]byte("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		for range 10 {
			h, err := readHead(r)
			if err != nil || h.method == methodTunnel {
				return
			}
			var sent bytes.Buffer
			if err := h.send(&sent, false); err != nil {
				t.Fatal(err)
			}
			if err := h.body.send(&sent, r, nil); err != nil {
				return
			}
			sent.WriteString("NEXT")
			other := bufio.NewReader(bytes.NewReader(sent.Bytes()))
			req, err := http.ReadRequest(other)
			if err != nil {
				if strings.Contains(err.Error(), "invalid URL escape") || strings.Contains(err.Error(), "parse") {
					return // of paths we know nothing, and it is stricter
				}
				t.Fatalf("another reader refuses %q: %v", sent.Bytes(), err)
			}
			a, err := parseAuthority(req.Host)
			if err != nil || a != h.to && !a.same(h.to, 80) {
				t.Fatalf("another reader takes %q to %q, we to %+v", sent.Bytes(), req.Host, h.to)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatalf("another reader cannot read the body of %q: %v", sent.Bytes(), err)
			}
			if !h.chunked && int64(len(body)) != h.length {
				t.Fatalf("another reader reads %d bytes of %q, we %d", len(body), sent.Bytes(), h.length)
			}
			if rest, _ := io.ReadAll(other); string(rest) != "NEXT" {
				t.Fatalf("another reader ends elsewhere in %q: %q remains", sent.Bytes(), rest)
			}
		}
	})
}
