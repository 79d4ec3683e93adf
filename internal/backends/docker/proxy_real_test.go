//go:build dockertest

package docker

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

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
	b, image := engine(t)
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
		out, exit := run(t, s, "python3", "-c", fetch, url)
		if exit.Code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s: %q, %+v", c.name, out, exit)
		}
	}
	d, err := s.(driver.Denier).Denied(t.Context())
	if err != nil || len(d.Told) != 4 || d.Other != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}
