package egress_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// rules reads an allowlist of one word each.
func rules(t testing.TB, words ...string) []driver.Rule {
	t.Helper()
	var out []driver.Rule
	for _, w := range words {
		r, err := driver.ParseRule(w)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func compile(t testing.TB, words ...string) *egress.Policy {
	t.Helper()
	p, err := egress.Compile(rules(t, words...), egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request reads "host:port", "address:port" or "host:port@address".
func request(t testing.TB, s string) egress.Request {
	t.Helper()
	target, at, named := strings.Cut(s, "@")
	var r egress.Request
	if ap, err := netip.ParseAddrPort(target); err == nil {
		r.Addr, r.Port = ap.Addr(), ap.Port()
	} else if _, err := fmt.Sscanf(target[strings.LastIndexByte(target, ':')+1:], "%d", &r.Port); err != nil {
		t.Fatal(err)
	} else {
		r.Host = target[:strings.LastIndexByte(target, ':')]
	}
	if named {
		r.Addr = netip.MustParseAddr(at)
	}
	return r
}

func TestDecide(t *testing.T) {
	t.Parallel()
	words := func(w ...string) []string { return w }
	for _, c := range []struct {
		name    string
		rules   []string
		request string
		want    egress.Reason
	}{
		{"nothing is allowed without rules (M18)", nil, "example.com:443", egress.NoRules},
		{"an address is not allowed without rules (M34)", nil, "203.0.113.9:443", egress.NoRules},
		{"a host on a port left out is allowed on 443", words("example.com"), "example.com:443", egress.Allowed},
		{"and on 80", words("example.com"), "example.com:80", egress.Allowed},
		{"and on no other (M28)", words("example.com"), "example.com:8443", egress.Port},
		{"a host is allowed on its port alone (M06)", words("chase.com:443"), "chase.com:8443", egress.Port},
		{"a request in capitals with a dot is the same (M02)", words("example.com"), "EXAMPLE.com.:443", egress.Allowed},
		{"a request with two dots is none (M02)", words("example.com"), "example.com..:443", egress.Malformed},
		{"a request with a NUL is none (M03)", words("example.com"), "example.com\x00.evil.example:443", egress.Malformed},
		{"a request in another script is none, as an A-label it is (M01)", words("xn--bcher-kva.example"), "bücher.example:443", egress.Malformed},
		{"an A-label matches its own", words("xn--bcher-kva.example"), "XN--bcher-kva.example:443", egress.Allowed},
		{"a look-alike in front (M06)", words("chase.com"), "evilchase.com:443", egress.Host},
		{"a look-alike behind (M06)", words("chase.com"), "chase.com.attacker.com:443", egress.Host},
		{"a look-alike of a wildcard (M07)", words("*.trusted.net"), "nottrusted.net:443", egress.Host},
		{"a subdomain of an exact host (M07)", words("example.com"), "a.example.com:443", egress.Host},
		{"the domain of a wildcard (M07)", words("*.example.com"), "example.com:443", egress.Host},
		{"a subdomain of a wildcard", words("*.example.com"), "a.example.com:443", egress.Allowed},
		{"and one far below", words("*.example.com"), "a.b.c.d.example.com:443", egress.Allowed},
		{"the narrower wildcard's port counts too", words("*.example.com:443", "*.b.example.com:8443"), "a.b.example.com:8443", egress.Allowed},
		{"and so does the wider one's", words("*.example.com:443", "*.b.example.com:8443"), "a.b.example.com:443", egress.Allowed},
		{"the wildcard's port counts for a host with a rule of its own", words("*.example.com:443", "a.example.com:8443"), "a.example.com:443", egress.Allowed},
		{"a host never opens a bare address (M10)", words("example.com"), "203.0.113.9:443", egress.Address},
		{"a host at a public address", words("example.com"), "example.com:443@203.0.113.9", egress.Allowed},
		{"a host at a private address", words("example.com"), "example.com:443@10.0.0.1", egress.Protected},
		{"a host at the metadata service", words("example.com"), "example.com:80@169.254.169.254", egress.Protected},
		{"a host at a mapped private address", words("example.com"), "example.com:443@::ffff:10.0.0.1", egress.Protected},
		{"a host at a private address that a rule names", words("example.com", "10.0.0.0/24:443"), "example.com:443@10.0.0.1", egress.Allowed},
		{"a host at a private address that a rule names on another port", words("example.com", "10.0.0.0/24:22"), "example.com:443@10.0.0.1", egress.Protected},
		{"a host at a private address that a rule reaches across", words("example.com", "0.0.0.0/0"), "example.com:443@10.0.0.1", egress.Protected},
		{"another host at an address that is open", words("example.com", "203.0.113.0/24"), "evil.example:443@203.0.113.9", egress.Host},
		{"an address in a range", words("203.0.113.0/24:22"), "203.0.113.9:22", egress.Allowed},
		{"its mapped form", words("203.0.113.0/24:22"), "[::ffff:203.0.113.9]:22", egress.Allowed},
		{"on another port (M29)", words("203.0.113.0/24:22"), "203.0.113.9:443", egress.Port},
		{"outside", words("203.0.113.0/24:22"), "203.0.114.0:22", egress.Address},
		{"the wider range's port counts inside the narrower", words("203.0.113.0/24:22", "203.0.113.8/29:443"), "203.0.113.9:22", egress.Allowed},
		{"beside a narrower range that begins later", words("203.0.113.0/24:22", "203.0.113.8/29:22"), "203.0.113.200:22", egress.Allowed},
		{"every address does not open metadata", words("0.0.0.0/0:80"), "169.254.169.254:80", egress.Protected},
		{"nor do the link-local addresses", words("169.254.0.0/16:80"), "169.254.169.254:80", egress.Protected},
		{"its own rule does", words("169.254.169.254:80"), "169.254.169.254:80", egress.Allowed},
		{"the last address of all is in the last half (M09)", words("128.0.0.0/1"), "239.255.255.255:80", egress.Protected},
		{"the last address before the reserved ones is reached (M09)", words("128.0.0.0/1"), "223.255.255.255:80", egress.Allowed},
		{"a range that ends at 255.255.255.255 is applied (M09)", words("255.255.255.0/24"), "255.255.255.254:80", egress.Allowed},
		{"IPv6 link-local is not in every address (M14)", words("::/0"), "[fe80::1]:80", egress.Protected},
		{"IPv6 metadata is not in the unique local range (M14)", words("fc00::/7"), "[fd00:ec2::254]:80", egress.Protected},
		{"IPv6 is not in 0.0.0.0/0", words("0.0.0.0/0"), "[2606:4700::1]:80", egress.Address},
		{"port 0 is none", words("example.com"), "example.com:0", egress.Malformed},
		{"a name that is an address is none", words("example.com"), "0x7f.1:443", egress.Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.rules...)
			r := request(t, c.request)
			got := p.Decide(r)
			if got.Reason != c.want || got.Allowed != (c.want == egress.Allowed) || got.Allowed != (got.Rule >= 0) {
				t.Errorf("Decide(%v) = %+v, want %s", r, got, c.want)
			}
			e := p.Explain(r)
			if e.Allowed != got.Allowed || e.Reason != got.Reason || e.Text == "" || e.Allowed != (e.Rule != nil) || e.Allowed && (e.Fix != "" || e.Nearest != nil) {
				t.Errorf("Explain(%v) = %+v", r, e)
			}
		})
	}
}

func TestTheNilPolicyAllowsNothing(t *testing.T) {
	t.Parallel()
	var p *egress.Policy
	r := egress.Request{Host: "example.com", Port: 443}
	if d, e := p.Decide(r), p.Explain(r); d.Allowed || e.Allowed || p.Resolve("example.com").Allowed || p.Answer(netip.MustParseAddr("1.1.1.1")) || p.Rules() != nil {
		t.Errorf("got %v, %v", d, e)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	p := compile(t, "a.example:8443", "*.b.example", "10.0.0.0/8:22")
	for name, want := range map[string]egress.Reason{
		"A.example.": egress.Allowed, "x.b.example": egress.Allowed, "b.example": egress.Host, "x.a.example": egress.Host, "": egress.Malformed, "10.0.0.1": egress.Malformed,
	} {
		if got := p.Resolve(name); got.Reason != want {
			t.Errorf("Resolve(%q) = %+v", name, got)
		}
	}
	for addr, want := range map[string]bool{"203.0.113.9": true, "10.0.0.1": true, "192.168.0.1": false, "::1": false, "::ffff:169.254.169.254": false} {
		if got := p.Answer(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Answer(%s) = %v", addr, got)
		}
	}
	if p.Answer(netip.Addr{}) {
		t.Error("no address is an answer")
	}
}

// The host's own addresses are protected although they may be public.
func TestOptionsProtect(t *testing.T) {
	t.Parallel()
	host := driver.Range{Prefix: netip.MustParsePrefix("203.0.113.1/32"), Class: "host"}
	bridge := driver.Range{Prefix: netip.MustParsePrefix("172.17.0.1/16"), Class: "host"}
	for _, c := range []struct {
		name  string
		rules []string
		addr  string
		want  bool
	}{
		{"a range around the host's address does not open it", []string{"203.0.113.0/24"}, "203.0.113.1", false},
		{"nor its mapped form", []string{"203.0.113.0/24"}, "::ffff:203.0.113.1", false},
		{"but its neighbour", []string{"203.0.113.0/24"}, "203.0.113.2", true},
		{"its own rule does", []string{"203.0.113.1/32"}, "203.0.113.1", true},
		{"the private range does not open the bridge's network", []string{"172.16.0.0/12"}, "172.17.0.9", false},
		{"but what is beside it", []string{"172.16.0.0/12"}, "172.18.0.9", true},
		{"the bridge's own rule does", []string{"172.17.0.0/24"}, "172.17.0.9", true},
		{"NAT64 does not open the host's address", []string{"64:ff9b::/96"}, "64:ff9b::203.0.113.1", false},
		{"but its neighbour", []string{"64:ff9b::/96"}, "64:ff9b::203.0.113.2", true},
		{"NAT64 of the host's address by its own rule", []string{"64:ff9b::203.0.113.1/128"}, "64:ff9b::203.0.113.1", true},
		{"the local NAT64 does not open it", []string{"64:ff9b:1::/48"}, "64:ff9b:1:7::203.0.113.1", false},
		{"nor 6to4", []string{"2002::/16"}, "2002:cb00:7101::9", false},
		{"6to4 of the host's address by its own rule", []string{"2002:cb00:7101::/48"}, "2002:cb00:7101::9", true},
		{"nor the compatible form", []string{"::/64"}, "::203.0.113.1", false},
		{"nor the translated form", []string{"::ffff:0:0:0/96"}, "::ffff:0:203.0.113.1", false},
		{"the bridge's network in NAT64 is not in the private range there", []string{"64:ff9b::172.16.0.0/108"}, "64:ff9b::172.17.0.9", false},
		{"but what is beside it", []string{"64:ff9b::172.16.0.0/108"}, "64:ff9b::172.18.0.9", true},
	} {
		p, err := egress.Compile(rules(t, c.rules...), egress.Options{Protect: []driver.Range{host, bridge}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(egress.Request{Addr: netip.MustParseAddr(c.addr), Port: 443}); got.Allowed != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Whatever form driver.ProtectedBy looks into, the ranges of Options hold in it.
func TestOptionsProtectEveryFormThatTheDriverKnows(t *testing.T) {
	t.Parallel()
	p, err := egress.Compile(rules(t, "::/0", "0.0.0.0/0"), egress.Options{Protect: []driver.Range{{Prefix: netip.MustParsePrefix("203.0.113.1/32"), Class: "host"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"64:ff9b::%s", "64:ff9b:1::%s", "64:ff9b:1:2:3:4:%s", "::%s", "::ffff:%s", "::ffff:0:%s"} {
		if a := netip.MustParseAddr(fmt.Sprintf(f, "169.254.169.254")); driver.Classify(a) != driver.ClassMetadata {
			t.Errorf("%s is %s", a, driver.Classify(a))
		}
		if a := netip.MustParseAddr(fmt.Sprintf(f, "203.0.113.1")); p.Answer(a) {
			t.Errorf("%s is an answer", a)
		}
	}
}

// naive is the meaning of rules, written without any cleverness.
func naive(all []driver.Rule, r egress.Request) bool {
	for _, rule := range all {
		port := false
		for _, p := range rule.Ports {
			port = port || p == r.Port
		}
		base, wild := strings.CutPrefix(rule.Host, "*.")
		switch {
		case !port:
		case r.Host == "" && rule.Host == "" && driver.Opens(rule.Prefix, r.Addr):
			return true
		case r.Host != "" && rule.Host == r.Host, r.Host != "" && wild && strings.HasSuffix(r.Host, "."+base):
			return true
		}
	}
	return false
}

func TestDecideIsWhatTheRulesMean(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	label := func() string { return string(rune('a' + rng.IntN(3))) }
	name := func() string {
		s := label() + ".e"
		for range rng.IntN(4) {
			s = label() + "." + s
		}
		return s
	}
	addr := func() netip.Addr {
		if rng.IntN(3) == 0 {
			b := netip.MustParseAddr([]string{"fc00::", "64:ff9b::", "2000::", "::"}[rng.IntN(4)]).As16()
			b[rng.IntN(16)] = byte(rng.IntN(256))
			b[12+rng.IntN(4)] = byte(rng.IntN(256))
			return netip.AddrFrom16(b).Unmap()
		}
		return netip.AddrFrom4([4]byte{[]byte{10, 169, 8, 255}[rng.IntN(4)], []byte{254, 0, 255}[rng.IntN(3)], byte(rng.IntN(2)) * 169, byte(rng.IntN(256))})
	}
	for range 300 {
		var in []driver.Rule
		for range rng.IntN(40) {
			r := driver.Rule{Ports: []uint16{uint16(1 + rng.IntN(3))}}
			switch rng.IntN(3) {
			case 0:
				r.Host = name()
			case 1:
				r.Host = "*." + name()
			default:
				a := addr()
				r.Prefix = netip.PrefixFrom(a, rng.IntN(a.BitLen()+1))
			}
			in = append(in, r)
		}
		p, err := egress.Compile(in, egress.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			r := egress.Request{Port: uint16(1 + rng.IntN(3))}
			if rng.IntN(2) == 0 {
				r.Host = name()
			} else {
				r.Addr = addr()
			}
			got := p.Decide(r)
			if want := naive(p.Rules(), r); got.Allowed != want {
				t.Fatalf("Decide(%v) = %+v, want %v, by %v", r, got, want, p.Rules())
			}
			if got.Allowed && !naive(p.Rules()[got.Rule:got.Rule+1], r) {
				t.Fatalf("Decide(%v) names the rule %v", r, p.Rules()[got.Rule])
			}
			p.Explain(r)
		}
	}
}

// tenThousand is a long allowlist of every kind.
func tenThousand() []driver.Rule {
	var in []driver.Rule
	for i := range 10_000 {
		switch r := (driver.Rule{Ports: []uint16{443, 8443}}); i % 4 {
		case 0:
			r.Host = fmt.Sprintf("h%d.example.com", i)
			in = append(in, r)
		case 1:
			r.Host = fmt.Sprintf("*.Z%d.example.net.", i)
			in = append(in, r)
		case 2:
			r.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(1 + i%200), byte(i >> 8), byte(i), 0}), 8+i%25)
			in = append(in, r)
		default:
			b := netip.MustParseAddr("2600::").As16()
			b[2], b[3], b[5] = byte(i>>8), byte(i), byte(i)
			r.Prefix = netip.PrefixFrom(netip.AddrFrom16(b), 24+i%100)
			in = append(in, r)
		}
	}
	return in
}

func BenchmarkCompile10000(b *testing.B) {
	in := tenThousand()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := egress.Compile(in, egress.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := egress.Compile(tenThousand(), egress.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]egress.Request{
		"a host":              request(b, "h4000.example.com:443"),
		"below a wildcard":    request(b, "a.b.c.z4001.example.net:443@203.0.113.9"),
		"no rule's host":      request(b, "www.nowhere.example:443"),
		"a very long name":    request(b, strings.Repeat("a.", 120)+"example.net:443"),
		"an address":          request(b, "11.1.10.1:443"),
		"no rule's address":   request(b, "223.0.0.1:443"),
		"an IPv6 address":     request(b, "[2600:a03:a000::1]:443"),
		"a protected address": request(b, "169.254.169.254:443"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
}

// The bounds promised for 10,000 rules, with room for a loaded machine: a
// hundred times as much would pass no more.
func TestTenThousandRulesAreNoBurden(t *testing.T) {
	in := tenThousand()
	p, err := egress.Compile(in, egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { p.Decide(egress.Request{Host: "a.z4001.example.net", Port: 443}) }); n > 0 {
		t.Errorf("a decision on a host allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { p.Decide(egress.Request{Addr: netip.MustParseAddr("223.0.0.1"), Port: 443}) }); n > 0 {
		t.Errorf("a decision on an address allocates %v times", n)
	}
	if got := egress.Lint(in, driver.Proxy); len(got) == 0 {
		t.Error("nothing is wrong with ten thousand rules that overlap")
	}
}

func FuzzDecide(f *testing.F) {
	for _, s := range []string{"example.com", "a.example.com.", "*.example.com", "10.0.0.1", "\x00"} {
		f.Add(s, []byte{10, 0, 0, 1}, uint16(443))
	}
	p, err := egress.Compile([]driver.Rule{{Host: "example.com"}, {Host: "*.example.com"}, {Prefix: netip.MustParsePrefix("10.0.0.0/9")}, {Prefix: netip.MustParsePrefix("::/0")}}, egress.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host string, addr []byte, port uint16) {
		a, _ := netip.AddrFromSlice(addr)
		r := egress.Request{Host: host, Addr: a, Port: port}
		d, e := p.Decide(r), p.Explain(r)
		if d.Allowed != e.Allowed {
			t.Fatalf("%v: %v, %v", r, d, e)
		}
		for _, s := range []string{e.Request, e.Text, e.Fix} {
			if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Fatalf("%q is not fit to be printed", s)
			}
		}
		if !d.Allowed {
			return
		}
		if h, err := driver.CanonicalHost(host); host != "" && (err != nil || h != "example.com" && !strings.HasSuffix(h, ".example.com")) {
			t.Fatalf("%v is allowed", r)
		}
		if a.IsValid() && driver.Classify(a) != driver.ClassPublic && !netip.MustParsePrefix("10.0.0.0/9").Contains(a.Unmap()) {
			t.Fatalf("%v is allowed", r)
		}
	})
}
