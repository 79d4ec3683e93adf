package probe

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func testEnv() Env {
	a := netip.MustParseAddr
	return Env{Sign: "sbx0123456789abc", Denied: a("198.51.100.77"), Denied6: a("2001:db8:5b58::4d"), Allowed: a("198.51.100.10"), CIDR: a("198.51.100.30"),
		Next: a("198.51.100.31"), Private: Specials[3], World: a("198.51.100.1"), Names: a("198.51.100.53"), Near: a("172.31.0.2"), Engine: a("172.31.0.1")}
}

func TestTheZoneLeadsWhereAttemptsNeedIt(t *testing.T) {
	t.Parallel()
	e := testEnv()
	for name, want := range map[string]string{
		"allowed.prove.example":        "198.51.100.10",
		"ALLOWED.prove.example.":       "198.51.100.10",
		"x.allowed.prove.example":      "",
		"any.wild.prove.example":       "198.51.100.10",
		"x.meta.wild.prove.example":    "169.254.169.254",
		"x.mapped.wild.prove.example":  "::ffff:169.254.169.254",
		"x.mixed.wild.prove.example":   "198.51.100.10 10.211.7.3",
		"x.private.wild.prove.example": "10.211.7.3",
		"wild.prove.example":           "",
		"s.d77.evil.prove.example":     "198.51.100.77",
		"s.d300.evil.prove.example":    "",
		"s.77.evil.prove.example":      "",
		"example.com":                  "",
		"":                             "",
	} {
		var got []string
		for _, a := range e.Lookup(name) {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s leads to %v, want %s", name, got, want)
		}
	}
	if got := e.Lookup(e.evil()); len(got) != 1 || got[0] != e.Denied {
		t.Errorf("%s leads to %v", e.evil(), got)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07allowed\x05prove\x07example\x00\x00\x01\x00\x01"))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xff"))
	f.Add([]byte{})
	s := &Server{Env: testEnv()}
	f.Fuzz(func(t *testing.T, q []byte) {
		a := s.Answer(q)
		if a != nil && (!bytes.Equal(a[:2], q[:2]) || a[2]&0x80 == 0) {
			t.Errorf("%x is answered by %x", q, a)
		}
	})
}

func TestTheServerAnswersWhatAttemptsSay(t *testing.T) {
	t.Parallel()
	s, err := NewServer(testEnv())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		port  uint16
		words string
		want  string
	}{
		"HTTP":                  {80, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
		"a proxy":               {3128, "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
		"what is neither":       {443, "\x00\x01", "alive"},
		"a server speaks first": {22, "", "alive"},
	} {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(far, c.port) }()
		wrote := make(chan struct{})
		go func() { defer close(wrote); _, _ = near.Write([]byte(c.words)) }()
		b := make([]byte, 256)
		n, err := near.Read(b)
		if err != nil || !strings.HasPrefix(string(b[:n]), c.want) {
			t.Errorf("%s: %q, %v", name, b[:n], err)
		}
		_ = near.Close()
		<-wrote
		<-done
	}
}
