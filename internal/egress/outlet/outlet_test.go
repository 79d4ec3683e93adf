package outlet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// speak says words to an Outlet and gives the status of the answer, and what
// came after.
func speak(t *testing.T, o *Outlet, words string) (status int, rest string) {
	t.Helper()
	inside, outside := net.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); o.Serve(t.Context(), outside) }()
	go func() { _, _ = io.WriteString(inside, words) }()
	res, err := http.ReadResponse(bufio.NewReader(inside), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	n := 0
	if res.StatusCode == http.StatusOK {
		n, _ = inside.Read(b)
	}
	_ = res.Body.Close()
	_ = inside.Close()
	<-served
	return res.StatusCode, string(b[:n])
}

func connect(to string) string { return "CONNECT " + to + " HTTP/1.1\r\n\r\n" }

// The machine's own loopback, by its own dialler: what a rule names is reached,
// and nothing else is.
func TestTheMachineIsReachedWhereARuleNamesIt(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "alive")
			_ = c.Close()
		}
	}()
	at := netip.MustParseAddrPort(l.Addr().String())
	for name, c := range map[string]struct {
		prefix string
		status int
	}{
		"by its address":                 {"127.0.0.1/32", 200},
		"by its range":                   {"127.0.0.0/8", 200},
		"not by the neighbour's address": {"127.0.0.2/32", 403},
		"not by everything":              {"0.0.0.0/0", 403},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := New(driver.Network{Egress: []driver.Rule{{Prefix: netip.MustParsePrefix(c.prefix), Ports: []uint16{at.Port()}}}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			status, said := speak(t, o, connect(at.String()))
			if status != c.status || (status == 200) != (said == "alive") {
				t.Errorf("%d, %q", status, said)
			}
			told, other := o.Denied()
			if (len(told) == 0) != (status == 200) || other != 0 {
				t.Errorf("told %+v", told)
			}
		})
	}
}

func TestNamesAreAskedForAsTheyAreAndNoSearchDomainIsTried(t *testing.T) {
	t.Parallel()
	var asked []string
	o, err := New(driver.Network{Egress: []driver.Rule{{Host: "*.example.com"}}}, Options{
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			asked = append(asked, name)
			return []netip.Addr{netip.MustParseAddr("198.51.100.1")}, nil
		},
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) { return nil, fmt.Errorf("dialled %s", to) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := speak(t, o, connect("A.Example.com:443")); status != 502 {
		t.Errorf("an allowed one: %d", status)
	}
	if status, _ := speak(t, o, connect("evil.example:443")); status != 403 {
		t.Errorf("a denied one: %d", status)
	}
	if diff := cmp.Diff([]string{"a.example.com."}, asked); diff != "" {
		t.Error(diff)
	}
}

// A program in a sandbox must not get at the machine that its owner runs on
// through a rule that means something else.
func TestWhatIsTheMachinesIsProtected(t *testing.T) {
	t.Parallel()
	mask := func(ones, bits int) net.IPMask { return net.CIDRMask(ones, bits) }
	own, err := machine(func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.ParseIP("127.0.0.1"), Mask: mask(8, 32)},
			&net.IPNet{IP: net.ParseIP("198.51.100.7").To4(), Mask: mask(24, 32)},
			&net.IPNet{IP: net.ParseIP("10.1.2.3"), Mask: mask(16, 32)},
			&net.IPNet{IP: net.ParseIP("203.0.113.5"), Mask: mask(96+30, 128)}, // in the longer form
			&net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: mask(64, 128)},
			&net.IPNet{IP: net.ParseIP("192.0.2.1"), Mask: mask(0, 32)},
			&net.IPAddr{IP: net.ParseIP("2001:db8:1::1")},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, addr string
		want       egress.Reason
	}{
		{"0.0.0.0/0", "198.51.100.7", egress.Protected},
		{"0.0.0.0/0", "198.51.100.8", egress.Protected},
		{"0.0.0.0/0", "198.51.101.8", egress.Allowed},
		{"198.51.100.0/24", "198.51.100.8", egress.Allowed}, // the network by name
		{"198.51.100.0/24", "198.51.100.7", egress.Protected},
		{"198.51.100.7/32", "198.51.100.7", egress.Allowed},
		{"10.0.0.0/8", "10.1.2.4", egress.Protected}, // private by name, and the machine's network is not named
		{"10.0.0.0/8", "10.2.0.1", egress.Allowed},
		{"203.0.113.0/24", "203.0.113.6", egress.Protected},
		{"203.0.113.0/24", "203.0.113.9", egress.Allowed},
		{"2000::/3", "2001:db8::8", egress.Protected},
		{"2000::/3", "2001:db8:1::1", egress.Protected},
		{"2000::/3", "2001:db8:1::2", egress.Allowed},
		{"192.0.2.0/24", "192.0.2.1", egress.Protected},
		{"192.0.2.0/24", "192.0.2.2", egress.Allowed},
	} {
		p, err := egress.Compile([]driver.Rule{{Prefix: netip.MustParsePrefix(c.rule)}}, egress.Options{Protect: own})
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(egress.Request{Addr: netip.MustParseAddr(c.addr), Port: 443}); d.Reason != c.want {
			t.Errorf("a rule for %s and %s: %s, want %s", c.rule, c.addr, d.Reason, c.want)
		}
	}
}

// A network that the machine joins while a sandbox runs is protected too, and so
// is one that it cannot tell of any more.
func TestWhatBecomesTheMachinesIsProtectedFromThenOn(t *testing.T) {
	t.Parallel()
	var now []net.Addr
	var fails error
	var dialled []string
	o, err := New(driver.Network{Egress: []driver.Rule{{Prefix: netip.MustParsePrefix("198.51.0.0/16")}, {Host: "a.example.com"}}}, Options{
		addrs: func() ([]net.Addr, error) { return now, fails },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("198.51.100.2")}, nil
		},
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			dialled = append(dialled, to.String())
			return nil, errors.New("a test")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	try := func(to string) {
		t.Helper()
		if status, _ := speak(t, o, connect(to)); status != 502 {
			t.Errorf("%s: %d", to, status)
		}
	}
	try("198.51.100.1:443")
	now = []net.Addr{&net.IPNet{IP: net.ParseIP("198.51.100.9").To4(), Mask: net.CIDRMask(24, 32)}}
	try("198.51.100.1:443")
	try("a.example.com:443")
	try("198.51.101.1:443")
	fails = errors.New("no netlink")
	try("198.51.101.1:443")
	if diff := cmp.Diff([]string{"198.51.100.1:443", "198.51.101.1:443"}, dialled); diff != "" {
		t.Error(diff)
	}
}

// A rule that names the machine's address opens its own ports there, and not
// those of another rule.
func TestARuleForOnePortOpensNoOtherOfAnAddressThatBecomesTheMachines(t *testing.T) {
	t.Parallel()
	var now []net.Addr
	var dialled []string
	o, err := New(driver.Network{Egress: []driver.Rule{
		{Prefix: netip.MustParsePrefix("203.0.113.5/32"), Ports: []uint16{22}},
		{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{443}},
		{Host: "a.example.com", Ports: []uint16{22, 443}},
	}}, Options{
		addrs: func() ([]net.Addr, error) { return now, nil },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.5")}, nil
		},
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			dialled = append(dialled, to.String())
			return nil, errors.New("a test")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		own  []net.Addr
		want []string
	}{
		{nil, []string{"203.0.113.5:443", "203.0.113.5:22", "203.0.113.5:443", "203.0.113.5:22"}},
		{[]net.Addr{&net.IPNet{IP: net.ParseIP("203.0.113.5").To4(), Mask: net.CIDRMask(32, 32)}}, []string{"203.0.113.5:22", "203.0.113.5:22"}},
	} {
		now, dialled = c.own, nil
		for _, to := range []string{"203.0.113.5:443", "203.0.113.5:22", "a.example.com:443", "a.example.com:22"} {
			if status, _ := speak(t, o, connect(to)); status != 502 {
				t.Errorf("%s: %d", to, status)
			}
		}
		if diff := cmp.Diff(c.want, dialled); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAMachineThatCannotBeKnownIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string]func() ([]net.Addr, error){
		"an error":                     func() ([]net.Addr, error) { return nil, errors.New("no netlink") },
		"something that is no address": func() ([]net.Addr, error) { return []net.Addr{&net.UnixAddr{Name: "x"}}, nil },
		"an address of the wrong length": func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: []byte{1, 2, 3}, Mask: net.CIDRMask(8, 32)}}, nil
		},
	} {
		if own, err := machine(addrs); err == nil {
			t.Errorf("%s: %v", name, own)
		}
	}
}

func TestRulesThatAreMalformedMakeNoWayOut(t *testing.T) {
	t.Parallel()
	_, err := New(driver.Network{Egress: []driver.Rule{{Host: "*"}}}, Options{})
	if driver.CodeOf(err) != driver.CodeInvalid || !strings.Contains(err.Error(), "wildcard") {
		t.Errorf("%v", err)
	}
}
