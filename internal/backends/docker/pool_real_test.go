//go:build dockertest

package docker

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestTheNetworksOfAnotherPoolAreClosed has another user's sandboxes on the
// engine, out of addresses that a rule for all of their range opens: those that were
// there before, and one that came when the host had just been looked at.
func TestTheNetworksOfAnotherPoolAreClosed(t *testing.T) {
	plain, image := engine(t)
	cli := raw(t, plain)
	server := `import socketserver
class H(socketserver.BaseRequestHandler):
    def handle(self): self.request.recv(1000); self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n")
class S(socketserver.ThreadingTCPServer): allow_reuse_address = True
S(("", 18124), H).serve_forever()`
	bystander(t, cli, image, "host", server)
	control := bystander(t, cli, image, "host", "import time\nwhile True: time.sleep(60)")

	opts := plain.opts
	opts.AddressPool = "10.213.7.0/26"
	other, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	mine, err := Open(t.Context(), plain.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mine.Close() })
	ordered := func() driver.Spec {
		s := realSpec(t, image)
		s.Lifetime = 300 * time.Second
		s.Network.Egress = rules(t, "10.0.0.0/8:18124")
		return s
	}
	create(t, mine, ordered()) // looks at the host
	theirs := create(t, other, ordered())
	if time.Since(mine.looked.at) > lookFresh {
		t.Fatal("the host is looked at again, so that this shows nothing")
	}
	closed := create(t, mine, ordered())
	later := create(t, other, ordered()) // after the one that must not reach it

	for name, sb := range map[string]driver.Sandbox{"one that was there": theirs, "one that came later": later} {
		for _, n := range networksOf(t, other, sb) {
			subnet := n.IPAM.Config[0].Subnet
			if !netip.MustParsePrefix(opts.AddressPool).Overlaps(subnet) {
				t.Fatalf("%s has %s", name, subnet)
			}
			if !strings.Contains(n.Name, "uplink") {
				continue // the host has no address there, and no way
			}
			host := nth(subnet, 1).String()
			eventually(t, 60*time.Second, "the host answers at "+host, func() bool { return answers(t.Context(), cli, control, host+":18124") == nil })
			if reached, what := attempt(t, closed, `http("`+host+`", 18124, "x.example")`); reached {
				t.Errorf("%s: the host, by the gateway's uplink %s: %s", name, host, what)
			}
			gate := nth(subnet, 2).String()
			if reached, what := attempt(t, closed, `tcp("`+gate+`", 18124)`); reached {
				t.Errorf("%s: the gateway %s: %s", name, gate, what)
			}
		}
	}
	// The proof can fail: a rule that names the network opens the host, by the same way.
	for _, n := range networksOf(t, other, theirs) {
		if strings.Contains(n.Name, "uplink") {
			spec, host := ordered(), nth(n.IPAM.Config[0].Subnet, 1).String()
			spec.Network.Egress = rules(t, host+"/32:18124")
			if reached, what := attempt(t, create(t, mine, spec), `http("`+host+`", 18124, "x.example")`); !reached {
				t.Errorf("a rule that names it: %s", what)
			}
		}
	}
}
