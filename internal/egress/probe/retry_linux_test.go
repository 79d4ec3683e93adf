package probe

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// heard is what is said over a connection.
type heard struct {
	net.Conn
	said bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.said.Write(b)
	return h.Conn.Write(b)
}

// loopback is a connection that holds what is said by both at the same time.
func loopback(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func TestASecondClientHelloIsSaidToWhomAsksForIt(t *testing.T) {
	t.Parallel()
	s, err := NewServer(testEnv())
	if err != nil {
		t.Fatal(err)
	}
	tr := &try{t.Context(), testEnv()}
	first, second, err := tr.hellos()
	if err != nil {
		t.Fatal(err)
	}
	evil := renamed(tr, second)
	for name, c := range map[string]struct {
		first, second string
		said          bool // the second
		want          string
	}{
		"the same name in both":      {first, second, true, "a TLS server answered"},
		"another name in the second": {first, evil, true, "after the second ClientHello: a record of type 21: 022f"}, // illegal_parameter: this one compares
		"an answer for good":         {second, evil, false, "the server does not ask"},
		"an alert":                   {changed(first, map[uint16][]byte{43: {2, 3, 9}}), evil, false, "a record of type 21"},
	} {
		near, far := loopback(t)
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(far, 443) }()
		_ = near.SetDeadline(time.Now().Add(10 * time.Second))
		h := &heard{Conn: near}
		got, err := retried(h, c.first, c.second)
		if err != nil {
			got = err.Error()
		}
		_ = near.Close()
		<-done
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		if strings.HasSuffix(h.said.String(), c.second) != c.said {
			t.Errorf("%s: the second was said: %v", name, !c.said)
		}
	}
}

// Were the sign in the first, which is allowed, the attempt would be open for
// that.
func TestTheFirstClientHelloNamesTheAllowedHostAndHasNoSign(t *testing.T) {
	t.Parallel()
	tr := &try{t.Context(), testEnv()}
	first, second, err := tr.hellos()
	if err != nil {
		t.Fatal(err)
	}
	evil := renamed(tr, second)
	if strings.Contains(first, tr.Sign) || !strings.Contains(second, tr.Sign) || !strings.Contains(evil, tr.evil()) || strings.Contains(evil, Host) {
		t.Errorf("%q\n%q\n%q", first, second, evil)
	}
	var names []string
	for _, h := range []string{first, second, evil} {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer far.Close()
			_ = tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
				names = append(names, i.ServerName)
				return nil, io.EOF
			}}).HandshakeContext(t.Context())
		}()
		_ = near.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(near, h)
		_, _ = io.Copy(io.Discard, near)
		<-done
	}
	if want := []string{Host, Host, tr.evil()}; !slices.Equal(names, want) {
		t.Errorf("a server reads %q, want %q", names, want)
	}
}
