package gateway

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// realHello is what Go's own client says.
func realHello(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	go func() {
		_ = tls.Client(a, c).Handshake()
	}()
	hello, err := func() ([]byte, error) {
		header := make([]byte, recordHeaderLen)
		if _, err := io.ReadFull(b, header); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint16(header[3:]))
		_, err := io.ReadFull(b, body)
		return append(header, body...), err
	}()
	_ = b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

func vec(n int, body ...byte) []byte {
	out := make([]byte, n, n+len(body))
	for i, l := n-1, len(body); i >= 0; i, l = i-1, l>>8 {
		out[i] = byte(l)
	}
	return append(out, body...)
}

func ext(kind uint16, data []byte) []byte {
	return append([]byte{byte(kind >> 8), byte(kind)}, vec(2, data...)...)
}

func sni(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(append(list, nameTypeHost), vec(2, []byte(n)...)...)
	}
	return ext(extServerName, vec(2, list...))
}

// message is a ClientHello with these extensions, without a record around it.
func message(exts ...[]byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, vec(1, make([]byte, 32)...)...)
	body = append(body, vec(2, 0x13, 0x01)...)
	body = append(body, vec(1, 0)...)
	if exts != nil {
		body = append(body, vec(2, bytes.Join(exts, nil)...)...)
	}
	return append([]byte{messageHello}, vec(3, body...)...)
}

// records cuts a message into records of n bytes.
func inRecords(m []byte, n int) []byte {
	var out []byte
	for len(m) > 0 {
		k := min(n, len(m))
		out = append(append(out, recordHandshake, 3, 1), vec(2, m[:k]...)...)
		m = m[k:]
	}
	return out
}

func inOne(m []byte) []byte { return inRecords(m, maxRecord) }

// tamper sets a byte.
func tamper(b []byte, at int, v byte) []byte {
	b = bytes.Clone(b)
	b[at] = v
	return b
}

func TestReadHello(t *testing.T) {
	t.Parallel()
	good := message(sni("example.com"))
	padded := message(sni("example.com"), ext(21, make([]byte, 40<<10)))
	for _, c := range []struct {
		name string
		in   []byte
		host string
		want egress.Reason // "" with no host: the bytes ended
	}{
		{name: "Go's own", in: realHello(t, &tls.Config{ServerName: "Example.com", MinVersion: tls.VersionTLS12}), host: "example.com"},
		{name: "one record", in: inOne(good), host: "example.com"},
		{name: "a record a byte", in: inRecords(good, 1), host: "example.com"},
		{name: "cut inside the name", in: inRecords(good, 95), host: "example.com"},
		{name: "three records of the largest size", in: inOne(padded), host: "example.com"},
		{name: "a final dot (M02)", in: inOne(message(sni("example.com."))), host: "example.com"},
		{name: "no extensions at all", in: inOne(message()), want: egress.NoServerName},
		{name: "no server name", in: inOne(message(ext(43, []byte{2, 3, 4}))), want: egress.NoServerName},
		{name: "two server names in one extension", in: inOne(message(sni("example.com", "evil.example"))), want: egress.BadTLS},
		{name: "two extensions with a server name", in: inOne(message(sni("example.com"), sni("evil.example"))), want: egress.BadTLS},
		{name: "an empty list of names", in: inOne(message(sni())), want: egress.BadTLS},
		{name: "an empty name", in: inOne(message(sni(""))), want: egress.BadTLS},
		{name: "a name of another type", in: inOne(message(ext(extServerName, vec(2, append([]byte{1}, vec(2, 'a', '.', 'b')...)...)))), want: egress.BadTLS},
		{name: "a NUL in the name (M03)", in: inOne(message(sni("example.com\x00.evil.example"))), want: egress.BadTLS},
		{name: "an address as the name", in: inOne(message(sni("203.0.113.9"))), want: egress.BadTLS},
		{name: "a U-label (M01)", in: inOne(message(sni("bücher.example"))), want: egress.BadTLS},
		{name: "Encrypted ClientHello beside a name", in: inOne(message(sni("example.com"), ext(0xfe0d, []byte{0}))), want: egress.Encrypted},
		{name: "Encrypted ClientHello first", in: inOne(message(ext(0xfe0d, nil), sni("example.com"))), want: egress.Encrypted},
		{name: "the outer reference of an inner hello", in: inOne(message(ext(extOuter, nil), sni("example.com"))), want: egress.Encrypted},
		{name: "encrypted SNI", in: inOne(message(ext(0xffce, nil))), want: egress.Encrypted},
		{name: "bytes after the name", in: inOne(message(ext(extServerName, append(vec(2, append([]byte{0}, vec(2, 'a', '.', 'b')...)...), 0)))), want: egress.BadTLS},
		{name: "a list longer than its extension", in: inOne(message(ext(extServerName, []byte{0, 9, 0, 0, 1, 'a'}))), want: egress.BadTLS},
		{name: "an extension longer than the hello", in: tamper(inOne(good), len(inOne(good))-len(sni("example.com"))+2, 1), want: egress.BadTLS},
		{name: "extensions shorter than the hello", in: inOne(append([]byte{messageHello}, vec(3, append(message(sni("example.com"))[4:], 0)...)...)), want: egress.BadTLS},
		{name: "a message inside its record with more behind", in: inOne(append(bytes.Clone(good), 0)), want: egress.BadTLS},
		{name: "no extensions, and behind it what looks like some", in: inOne(append(message(), vec(2, sni("example.com")...)...)), want: egress.BadTLS},
		{name: "an alert between the records", in: append(inRecords(good, 50)[:55], append([]byte{21, 3, 3, 0, 2, 1, 0}, inRecords(good[50:], 500)...)...), want: egress.BadTLS},
		{name: "an empty record", in: append([]byte{22, 3, 1, 0, 0}, inOne(good)...), want: egress.BadTLS},
		{name: "a record that is too long", in: []byte{22, 3, 1, 0x40, 1}, want: egress.BadTLS},
		{name: "another message", in: inOne(tamper(good, 0, 2)), want: egress.BadTLS},
		{name: "a message that says it is 16 MiB", in: inOne(tamper(good, 1, 0xff)), want: egress.BadTLS},
		{name: "SSL 2", in: []byte{0x80, 0x2e, 1, 3, 1}, want: egress.BadTLS},
		{name: "SSL 3", in: inOne(tamper(good, 5, 0)), want: egress.BadTLS},
		{name: "a record of another major version", in: tamper(inOne(good), 1, 4), want: egress.BadTLS},
		{name: "a session that is too long", in: inOne(tamper(good, 38, 33)), want: egress.BadTLS},
		{name: "more than 64 KiB", in: inRecords(message(sni("example.com"), ext(21, make([]byte, 60_000)), ext(22, make([]byte, 5000))), 16), want: egress.BadTLS},
		{name: "an end in a header", in: inOne(good)[:3]},
		{name: "an end in a record", in: inOne(good)[:30]},
		{name: "an end between records", in: inRecords(good, 50)[:55]},
		{name: "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := io.MultiReader(bytes.NewReader(c.in), strings.NewReader("what follows"))
			if c.want == "" && c.host == "" {
				r = bytes.NewReader(c.in)
			}
			got, err := ReadHello(r)
			switch {
			case c.host != "":
				if err != nil || got.ServerName != c.host || !bytes.Equal(got.Raw, c.in) {
					t.Fatalf("got %q and %d bytes, %v", got.ServerName, len(got.Raw), err)
				}
				if rest, _ := io.ReadAll(r); string(rest) != "what follows" {
					t.Errorf("it read too much, or too little: %q remains", rest)
				}
			case c.want == "":
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v", err)
				}
			default:
				if reasonOf(err, "") != c.want || got.ServerName != "" {
					t.Errorf("got %q, %v, want %s", got.ServerName, err, c.want)
				}
			}
		})
	}
}

var errStop = errors.New("stop")

// stdName is the name that Go's own server reads, and false if it reads none.
func stdName(hello []byte) (string, bool) {
	a, b := net.Pipe()
	var name string
	read := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Server(b, &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			name, read = i.ServerName, true
			return nil, errStop
		}}).Handshake()
		_ = b.Close()
	}()
	go func() { _, _ = io.Copy(io.Discard, a) }()
	_, _ = a.Write(hello)
	_ = a.Close()
	<-done
	return name, read
}

// A name that is read is the one that Go's own server reads.
func FuzzReadHello(f *testing.F) {
	f.Add(inOne(message(sni("example.com"))))
	f.Add(inRecords(message(sni("example.com"), ext(21, make([]byte, 100))), 7))
	f.Add(inOne(message(sni("a.example", "b.example"), ext(0xfe0d, nil))))
	f.Add(realHello(f, &tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := ReadHello(bytes.NewReader(in))
		if err != nil {
			if got.ServerName != "" {
				t.Fatalf("%q although %v", got.ServerName, err)
			}
			return
		}
		if !bytes.HasPrefix(in, got.Raw) || len(got.Raw) > MaxHello {
			t.Fatal("what it read is not what there was")
		}
		if name, ok := stdName(got.Raw); ok && strings.TrimSuffix(strings.ToLower(name), ".") != got.ServerName {
			t.Fatalf("we read %q, another reads %q", got.ServerName, name)
		}
	})
}
