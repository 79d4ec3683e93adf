//go:build dockertest

package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// far is a server of HTTP and one of TLS on the owner's loopback, which is what
// a sandbox in mode proxy reaches, and nothing that it reaches otherwise.
type far struct {
	http, https *httptest.Server
}

func newFar(t *testing.T, b *Backend) far {
	t.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "here is %s", r.Host) })
	f := far{httptest.NewServer(h), httptest.NewUnstartedServer(h)}
	f.https.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	f.https.StartTLS()
	t.Cleanup(func() { f.http.Close(); f.https.Close() })
	// Both names lead to the servers; only rules tell them apart.
	b.outlet.Lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		switch name {
		case "good.example.", "bad.example.":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, fmt.Errorf("%q is no name of this test", name)
	}
	return f
}

func portOf(s *httptest.Server) uint16 {
	return netip.MustParseAddrPort(s.Listener.Addr().String()).Port()
}

// rules open the name of both servers, and, since they are on loopback, their
// address by name.
func (f far) rules(t *testing.T) []driver.Rule {
	t.Helper()
	ports := []uint16{portOf(f.http), portOf(f.https)}
	rules, err := driver.Canonical([]driver.Rule{{Host: "good.example", Ports: ports}, {Prefix: netip.MustParsePrefix("127.0.0.1/32"), Ports: ports}})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// fetch is a program of the image's own that knows of proxies what its
// environment says, and nothing else.
const fetch = `import sys, ssl, urllib.request
ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
open = urllib.request.build_opener(urllib.request.ProxyHandler(), urllib.request.HTTPSHandler(context=ctx)).open
try:
    print(open(sys.argv[1], timeout=10).read().decode())
except Exception as e:
    print("refused:", e, getattr(e, "headers", None) and e.headers.get("X-Sandboxio-Reason"))
`

func TestAProgramFetchesWhatIsAllowedThroughTheProxyAndNothingElse(t *testing.T) {
	for _, runtime := range []string{"", "runsc"} {
		t.Run("runtime "+runtime, func(t *testing.T) { fetches(t, runtime) })
	}
}

func refused(t *testing.T, s driver.Sandbox) driver.Denials {
	t.Helper()
	tell, ok := driver.As[driver.Denier](s)
	if !ok {
		t.Fatal("the sandbox does not tell what it refused")
	}
	d, err := tell.Denied(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func fetches(t *testing.T, runtime string) {
	t.Helper()
	b, image := engineOn(t, runtime)
	f := newFar(t, b)
	spec := realSpec(t, image)
	spec.Network = driver.Network{Egress: f.rules(t), Mode: driver.Proxy}
	s := create(t, b, spec)
	for _, c := range []struct{ name, url, says string }{
		{"HTTP to an allowed name", "http://good.example:%HTTP/a", "here is good.example"},
		{"TLS to an allowed name", "https://good.example:%TLS/a", "here is good.example"},
		{"TLS to an allowed address", "https://127.0.0.1:%TLS/a", "Connection refused"}, // NO_PROXY: it is the sandbox's own loopback
		{"HTTP to another name of the same server", "http://bad.example:%HTTP/", "refused: HTTP Error 403"},
		{"TLS to another name of the same server", "https://bad.example:%TLS/", "refused:"},
		{"another port of an allowed name", "http://good.example:1/", "refused: HTTP Error 403"},
		{"a metadata service", "http://169.254.169.254/", "refused: HTTP Error 403: Forbidden protected"},
	} {
		url := strings.NewReplacer("%HTTP", fmt.Sprint(portOf(f.http)), "%TLS", fmt.Sprint(portOf(f.https))).Replace(c.url)
		t.Run(c.name, func(t *testing.T) {
			out, exit := run(t, s, "python3", "-c", fetch, url)
			if exit.Code != 0 || !strings.Contains(out, c.says) {
				t.Errorf("%q, %+v", out, exit)
			}
		})
	}
	d := refused(t, s)
	if len(d.Told) != 4 || d.Other != 0 || d.Unknown {
		t.Errorf("%+v", d)
	}
	other, err := b.Attach(t.Context(), s.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := refused(t, other); !d.Unknown || len(d.Told) > 0 || d.Other > 0 {
		t.Errorf("to who did not create it: %+v", d)
	}
}

// speak is what a program says to the proxy by itself, and what it hears.
const speak = `import os, socket, ssl, sys
s = socket.create_connection(("127.0.0.1", 3128), 10); s.settimeout(10)
to, first = sys.argv[1].encode().decode("unicode_escape"), sys.argv[2]
try:
    s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (to, to)).encode())
    said = s.recv(4096).decode("latin-1")
    if " 200 " in said and first.startswith("sni:"):
        ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
        s = ctx.wrap_socket(s, server_hostname=first[4:] or None)
        s.sendall(b"GET / HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n")
        said = ""
    elif " 200 " in said:
        s.sendall(first.encode().decode("unicode_escape").encode("latin-1")); said = ""
    while True:
        b = s.recv(4096)
        if not b: break
        said += b.decode("latin-1")
    print(said)
except Exception as e:
    print("refused:", e)
`

// A program that speaks to the proxy by itself gets no further than one that
// does it by the book: what it says inside a tunnel is looked at too. The
// controls reach the same servers by the same words.
func TestAProgramThatSpeaksToTheProxyItselfGetsNoFurther(t *testing.T) {
	b, image := engine(t)
	f := newFar(t, b)
	spec := realSpec(t, image)
	spec.Network = driver.Network{Mode: driver.Proxy}
	// The name is opened on both servers, the address on neither but where it
	// has to be, since they are on loopback.
	spec.Network.Egress = f.rules(t)
	s := create(t, b, spec)
	plain, tls := fmt.Sprintf("good.example:%d", portOf(f.http)), fmt.Sprintf("good.example:%d", portOf(f.https))
	get := func(host string) string {
		return "GET / HTTP/1.1\\r\\nHost: " + host + "\\r\\nConnection: close\\r\\n\\r\\n"
	}
	const here = "here is"
	for _, c := range []struct {
		name, to, first string
		reached         bool
	}{
		{"control: TLS by its name", tls, "sni:good.example", true},
		{"control: HTTP by its name", plain, get(plain), true},
		{"TLS that names another host (M26)", tls, "sni:bad.example", false},
		{"TLS that names nobody", tls, "sni:", false},
		{"HTTP that names another host", plain, get("bad.example"), false},
		{"HTTP that names two hosts", plain, "GET / HTTP/1.1\\r\\nHost: " + plain + "\\r\\nHost: bad.example\\r\\n\\r\\n", false},
		{"neither", plain, "SSH-2.0-x\\r\\n", false},
		{"a tunnel inside the tunnel", plain, "CONNECT bad.example:80 HTTP/1.1\\r\\n\\r\\n", false},
		{"another name (M30)", strings.Replace(tls, "good", "bad", 1), "sni:bad.example", false},
		{"a look-alike (M06)", strings.Replace(tls, "good", "evilgood", 1), "sni:evilgood.example", false},
		{"a name with a control character (M03)", strings.Replace(tls, "good", `good\x00`, 1), "sni:good.example", false},
		{"an odd address", "2130706433:80", "x", false},
		{"a mapped address", "[::ffff:169.254.169.254]:80", "x", false},
		{"metadata", "169.254.169.254:80", "x", false},
		{"the owner's other ports", "127.0.0.1:1", "x", false},
		{"the name's other ports (M28)", "good.example:22", "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := run(t, s, "python3", "-c", speak, c.to, c.first)
			if strings.Contains(out, here) != c.reached {
				t.Errorf("it says %q", out)
			}
		})
	}
	d := refused(t, s)
	total := d.Other
	for _, one := range d.Told {
		total += one.Count
	}
	if total != 14 {
		t.Errorf("%d refusals of 14 are told: %+v", total, d)
	}
}

// Nothing of the proxy outlives its sandbox, whatever is open.
func TestTheProxyEndsWithItsSandbox(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := netip.MustParseAddrPort(l.Addr().String())
	spec.Network = driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Ports: []uint16{at.Port()}}}}
	s := create(t, b, spec)
	if _, err := s.Start(t.Context(), driver.Cmd{Args: []string{"python3", "-c", speak, at.String(), "hello"}, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection outlives its sandbox: %v", err)
	}
	buf := make([]byte, 16<<20)
	eventually(t, 9*time.Second, "no goroutine of the proxy is left", func() bool {
		n := runtime.Stack(buf, true)
		all := string(buf[:n])
		return n < len(buf) && !strings.Contains(all, "gateway.(*Proxy)") && !strings.Contains(all, "guest.(*Client).tunnel")
	})
}
