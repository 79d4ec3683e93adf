package boot

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func config() Config {
	return Config{
		Rules:    []driver.Rule{{Host: "example.com", Ports: []uint16{443}}, {Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{5432}, Why: "the database"}},
		Inside:   netip.MustParsePrefix("198.18.0.0/29"),
		Gateway:  netip.MustParseAddr("198.18.0.1"),
		Uplink:   netip.MustParsePrefix("198.18.0.8/29"),
		Router:   netip.MustParseAddr("198.18.0.9"),
		Upstream: netip.MustParseAddrPort("192.0.2.53:53"),
		Protect:  []driver.Range{{Prefix: netip.MustParsePrefix("192.0.2.7/32"), Class: driver.ClassPrivate}},
		UID:      70000, Owned: true, Lifetime: time.Minute,
	}
}

var exact = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })}

func TestAGatewayIsToldAllOfIt(t *testing.T) {
	t.Parallel()
	want := config()
	for i := range 10_000 {
		want.Rules = append(want.Rules, driver.Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(1 + i>>14), byte(i >> 6), byte(i << 2), 0}), 30), Ports: []uint16{443}})
	}
	args, err := want.Args()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range args {
		if len(a) > maxArg {
			t.Errorf("an argument of %d bytes", len(a))
		}
	}
	got, err := ParseArgs(args)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, exact); d != "" {
		t.Error(d)
	}
}

func TestAGatewayIsNotStartedWith(t *testing.T) {
	t.Parallel()
	change := func(f func(*Config)) []string {
		c := config()
		f(&c)
		args, err := c.Args()
		if err != nil {
			t.Fatal(err)
		}
		return args
	}
	for name, args := range map[string][]string{
		"nothing":                                  nil,
		"another command":                          {"host"},
		"no configuration":                         {serve},
		"what is not packed":                       {serve, "!"},
		"what is not JSON":                         {serve, "H4sIAAAAAAAA/wEAAP//AAAAAAAAAAA="},
		"an uplink whose router is elsewhere":      change(func(c *Config) { c.Router = netip.MustParseAddr("192.0.2.1") }),
		"an uplink that overlaps":                  change(func(c *Config) { c.Uplink, c.Router = c.Inside, c.Gateway }),
		"no lifetime":                              change(func(c *Config) { c.Lifetime = 0 }),
		"an uplink in a form that is not a prefix": change(func(c *Config) { c.Uplink = netip.MustParsePrefix("198.18.0.9/29") }),
	} {
		if _, err := ParseArgs(args); err == nil {
			t.Errorf("%s: it is started", name)
		}
	}
}

func TestARefusalKeepsItsCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[driver.Code]driver.Code{driver.CodeUnsupported: driver.CodeUnsupported, driver.CodeInvalid: driver.CodeInvalid,
		driver.CodeLeaked: driver.CodeInternal, "": driver.CodeInternal, "made up": driver.CodeInternal} {
		if got := driver.CodeOf(Refused{Code: code, Text: "no"}.Err()); got != want {
			t.Errorf("%q became %q", code, got)
		}
	}
}

func TestTheDigestIsOfEveryRule(t *testing.T) {
	t.Parallel()
	c := config()
	of := func(c Config) string {
		r, err := gateway.Firewall(c.Rules, c.Site("eth0", "eth1"))
		if err != nil {
			t.Fatal(err)
		}
		return DigestOf(r)
	}
	one := of(c)
	if of(c) != one {
		t.Error("it is not the same for the same")
	}
	c.Protect = nil
	if of(c) == one {
		t.Error("it is the same without what is protected")
	}
}

func FuzzParseArgs(f *testing.F) {
	args, err := config().Args()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(strings.Join(args[1:], ""))
	f.Fuzz(func(t *testing.T, packed string) {
		if c, err := ParseArgs([]string{serve, packed}); err == nil && c.Lifetime <= 0 {
			t.Errorf("a gateway that lives for ever: %+v", c)
		}
	})
}

func FuzzParseLine(f *testing.F) {
	for _, l := range []Line{{Ready: &Ready{Inside: "eth0", Ruleset: "sha256:"}}, {Refused: &Refused{Code: "unsupported"}}, {Denied: &Denied{Other: 1}}, {Host: &Host{}}} {
		b, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLine(b)
		if err == nil && len(b) > MaxLine {
			t.Errorf("a line of %d bytes", len(b))
		}
		if err == nil && l.Refused != nil && l.Refused.Err() == nil {
			t.Error("a refusal without an error")
		}
	})
}
