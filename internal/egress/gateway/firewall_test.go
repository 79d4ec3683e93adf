package gateway

import (
	"errors"
	"flag"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var update = flag.Bool("update", false, "write the golden files anew")

func site() Site {
	return Site{
		Inside: "eth1", Uplink: "eth0", Sandbox: netip.MustParsePrefix("10.99.1.0/29"), Gateway: netip.MustParseAddr("10.99.1.1"),
		Upstream: netip.MustParseAddrPort("192.168.1.1:53"), UID: 64000, ProxyPort: 15001,
		Protect: []driver.Range{{Prefix: netip.MustParsePrefix("198.51.100.1/32"), Class: "host"}},
	}
}

func ruleList(t testing.TB, words ...string) []driver.Rule {
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

func TestFirewallInTheWordsOfNftables(t *testing.T) {
	t.Parallel()
	engine := site()
	engine.Upstream = netip.MustParseAddrPort("127.0.0.11:53")
	for name, c := range map[string]struct {
		rules []driver.Rule
		at    Site
	}{
		"deny":  {nil, site()},
		"hosts": {ruleList(t, "example.com", "*.example.org:8443"), engine},
		"all": {ruleList(t, "example.com", "*.example.org:8443", "203.0.113.0/24:22", "198.51.100.0/24:22", "10.0.0.0/8:5432", "10.1.0.0/16:22", "169.254.0.0/16:80",
			"128.0.0.0/1:443", "255.255.255.255/32:9"), site()},
	} {
		r, err := Firewall(c.rules, c.at)
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/firewall_" + name + ".nft"
		if *update {
			if err := os.WriteFile(file, []byte(r.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), r.String()); diff != "" {
			t.Errorf("%s (go test -update writes it anew):\n%s", file, diff)
		}
		reversed := slices.Clone(c.rules)
		slices.Reverse(reversed)
		for range 20 {
			if again, err := Firewall(reversed, c.at); err != nil || again.String() != r.String() {
				t.Fatalf("%s differs from one time to the next: %v", name, err)
			}
		}
	}
}

// packet is what a chain sees.
type packet struct {
	in, out     string
	v6          bool
	from, to    netip.Addr
	proto       string
	port        uint16
	established bool
	redirected  bool
	begins      bool
	many        bool // that began before it
	uid         uint32
}

// verdict is what the kernel would decide on a packet at a hook, as nftables
// documents it: the first verdict of each chain, drop being final.
func (r Ruleset) verdict(t *testing.T, hook string, p packet) (Verdict, PacketRule) {
	t.Helper()
	sets := map[string]egress.Spans{}
	for _, s := range r.Sets {
		sets[s.Name] = s.Spans
	}
	for _, c := range r.Chains {
		if c.Hook != hook {
			continue
		}
		got, by := c.Policy, PacketRule{}
		for _, rule := range c.Rules {
			needsV4 := rule.From.IsValid() || rule.NotFrom.IsValid() || rule.To.IsValid() || rule.ToSet != ""
			if rule.IPv6 && !p.v6 || needsV4 && p.v6 ||
				rule.In != "" && rule.In != p.in || rule.Out != "" && rule.Out != p.out ||
				rule.From.IsValid() && !rule.From.Contains(p.from) || rule.NotFrom.IsValid() && rule.NotFrom.Contains(p.from) ||
				rule.To.IsValid() && !rule.To.Contains(p.to) || rule.ToSet != "" && !sets[rule.ToSet].Contains(p.to) ||
				rule.Proto != "" && rule.Proto != p.proto || len(rule.Ports) > 0 && !slices.Contains(rule.Ports, p.port) ||
				rule.New && !p.begins || rule.Few && p.many || rule.Established && !p.established || rule.Redirected && !p.redirected || rule.UID != nil && *rule.UID != p.uid {
				continue
			}
			if rule.Verdict == Note { // decides nothing
				continue
			}
			got, by = rule.Verdict, rule
			break
		}
		if got != Accept {
			return got, by
		}
	}
	return Accept, PacketRule{}
}

func TestFirewallDecidesPackets(t *testing.T) {
	t.Parallel()
	r, err := Firewall(ruleList(t, "example.com", "203.0.113.0/24:22", "169.254.0.0/16:80", "198.51.100.0/24:22", "10.7.0.0/16:443"), site())
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr
	box, gw, up := addr("10.99.1.3"), addr("10.99.1.1"), addr("192.168.1.1")
	for _, c := range []struct {
		name, hook string
		p          packet
		want       Verdict
	}{
		{"a CIDR's port goes through", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 22}, Accept},
		{"and is not turned aside", "prerouting", packet{in: "eth1", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 22}, Accept},
		{"another port of it is dropped", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 23}, Drop},
		{"UDP to it is dropped", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("203.0.113.9"), proto: "udp", port: 22}, Drop},
		{"ICMP is dropped", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("203.0.113.9"), proto: "icmp"}, Drop},
		{"QUIC to anybody is dropped", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("8.8.8.8"), proto: "udp", port: 443}, Drop},
		{"QUIC is not turned aside", "prerouting", packet{in: "eth1", from: box, to: addr("8.8.8.8"), proto: "udp", port: 443}, Accept},
		{"a host's port is turned aside", "prerouting", packet{in: "eth1", from: box, to: addr("8.8.8.8"), proto: "tcp", port: 443}, Redirect},
		{"and never forwarded", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("8.8.8.8"), proto: "tcp", port: 443}, Drop},
		{"another name server is out of reach by UDP", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("8.8.8.8"), proto: "udp", port: 53}, Drop},
		{"and by TCP", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("8.8.8.8"), proto: "tcp", port: 53}, Drop},
		{"the resolver is reached", "input", packet{in: "eth1", from: box, to: gw, proto: "udp", port: 53}, Accept},
		{"the router is reached by what was turned aside", "input", packet{in: "eth1", from: box, to: gw, proto: "tcp", port: 15001, redirected: true}, Accept},
		{"and by nothing else", "input", packet{in: "eth1", from: box, to: gw, proto: "tcp", port: 15001}, Drop},
		{"nothing else of the gateway is reached", "input", packet{in: "eth1", from: box, to: gw, proto: "tcp", port: 22}, Drop},
		{"a neighbour on the uplink reaches nothing", "input", packet{in: "eth0", from: addr("172.18.0.9"), to: addr("172.18.0.2"), proto: "udp", port: 53}, Drop},
		{"nor the sandbox", "forward", packet{in: "eth0", out: "eth1", from: addr("172.18.0.9"), to: box, proto: "tcp", port: 22}, Drop},
		{"answers come back", "forward", packet{in: "eth0", out: "eth1", from: addr("203.0.113.9"), to: box, proto: "tcp", port: 40000, established: true}, Accept},
		{"metadata is out of reach although its neighbours are open", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("169.254.169.254"), proto: "tcp", port: 80}, Drop},
		{"they are", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("169.254.1.1"), proto: "tcp", port: 80}, Accept},
		{"the host is out of reach although it lies in an open range", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("198.51.100.1"), proto: "tcp", port: 22}, Drop},
		{"a protected address is not turned aside", "prerouting", packet{in: "eth1", from: box, to: addr("172.17.0.1"), proto: "tcp", port: 443}, Accept},
		{"but dropped", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("172.17.0.1"), proto: "tcp", port: 443}, Drop},
		{"a private range that is named goes through", "forward", packet{in: "eth1", out: "eth0", from: box, to: addr("10.7.0.1"), proto: "tcp", port: 443}, Accept},
		{"a false source is dropped", "prerouting", packet{in: "eth1", from: addr("192.0.2.1"), to: addr("203.0.113.9"), proto: "tcp", port: 22}, Drop},
		{"IPv6 is dropped on its way in", "prerouting", packet{in: "eth1", v6: true, from: addr("fe80::2"), to: addr("ff02::1"), proto: "udp"}, Drop},
		{"to the gateway", "input", packet{in: "eth1", v6: true, from: addr("fe80::2"), to: addr("fe80::1"), proto: "tcp", port: 22}, Drop},
		{"through it", "forward", packet{in: "eth1", out: "eth0", v6: true, from: addr("2001:db8::2"), to: addr("2001:db8::20"), proto: "tcp", port: 443}, Drop},
		{"and from it", "output", packet{out: "eth0", v6: true, from: addr("2001:db8::2"), to: addr("2001:db8::20"), proto: "tcp", port: 443, uid: 64000}, Drop},
		{"the resolver asks its upstream server", "output", packet{out: "eth0", to: up, proto: "udp", port: 53, uid: 64000}, Accept},
		{"and nothing else of that", "output", packet{out: "eth0", to: up, proto: "tcp", port: 443, uid: 64000}, Drop},
		{"the router connects", "output", packet{out: "eth0", to: addr("8.8.8.8"), proto: "tcp", port: 443, uid: 64000}, Accept},
		{"not to metadata, were it taken over", "output", packet{out: "eth0", to: addr("169.254.169.254"), proto: "tcp", port: 80, uid: 64000}, Drop},
		{"not to neighbours", "output", packet{out: "eth0", to: addr("172.17.0.2"), proto: "tcp", port: 443, uid: 64000}, Drop},
		{"not to the host", "output", packet{out: "eth0", to: addr("198.51.100.1"), proto: "tcp", port: 443, uid: 64000}, Drop},
		{"not to other ports", "output", packet{out: "eth0", to: addr("8.8.8.8"), proto: "tcp", port: 25, uid: 64000}, Drop},
		{"not by UDP", "output", packet{out: "eth0", to: addr("8.8.8.8"), proto: "udp", port: 443, uid: 64000}, Drop},
		{"not into the sandbox", "output", packet{out: "eth1", to: box, proto: "tcp", port: 443, uid: 64000}, Drop},
		{"other users do not connect, root included", "output", packet{out: "eth0", to: addr("8.8.8.8"), proto: "tcp", port: 443}, Drop},
		{"a connection of the sandbox begins", "postrouting", packet{out: "eth0", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 22, begins: true}, Masquerade},
		{"one too many does not", "postrouting", packet{out: "eth0", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 22, begins: true, many: true}, Drop},
		{"nor one of the router", "postrouting", packet{out: "eth0", from: addr("192.168.1.2"), to: addr("8.8.8.8"), proto: "tcp", port: 443, begins: true, many: true}, Drop},
		{"what has begun goes on", "postrouting", packet{out: "eth0", from: box, to: addr("203.0.113.9"), proto: "tcp", port: 22, established: true, many: true}, Masquerade},
		{"names are still resolved", "postrouting", packet{out: "eth0", from: addr("192.168.1.2"), to: up, proto: "udp", port: 53, begins: true, many: true}, Accept},
		{"answers to the sandbox go out", "output", packet{out: "eth1", to: box, proto: "udp", port: 40000, established: true}, Accept},
	} {
		if got, by := r.verdict(t, c.hook, c.p); got != c.want {
			t.Errorf("%s: %s by %q, want %s", c.name, got, by, c.want)
		}
	}
}

// What the packet filter tells of is rationed, by rule: who floods what is
// protected uses up no word of what is told of metadata.
func TestAnAttemptAtMetadataIsToldInAFlood(t *testing.T) {
	t.Parallel()
	r, err := Firewall(ruleList(t, "example.com", "169.254.0.0/16:80"), site())
	if err != nil {
		t.Fatal(err)
	}
	tells := func(to string) (by []int) {
		sets := map[string]egress.Spans{}
		for _, s := range r.Sets {
			sets[s.Name] = s.Spans
		}
		for i, rule := range r.Chains[slices.IndexFunc(r.Chains, func(c Chain) bool { return c.Name == "forward" })].Rules {
			if rule.In == "" || rule.Established || rule.ToSet != "" && !sets[rule.ToSet].Contains(netip.MustParseAddr(to)) || len(rule.Ports) > 0 {
				continue
			}
			if rule.Verdict != Note {
				break
			}
			by = append(by, i)
		}
		return by
	}
	metadata, private, public := tells("169.254.169.254"), tells("10.0.0.1"), tells("8.8.8.8")
	if len(metadata) != 1 || len(private) != 1 || len(public) != 1 || metadata[0] == private[0] || private[0] == public[0] {
		t.Errorf("metadata is told by %v, a private address by %v, a public one by %v", metadata, private, public)
	}
}

// What goes straight through is what the policy decides, for every address and
// port, whatever the rules (M09).
func TestFirewallIsThePolicy(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 12))
	edges := []string{"0.0.0.0", "10.0.0.0", "10.255.255.255", "11.0.0.0", "127.0.0.1", "169.253.255.255", "169.254.0.0", "169.254.169.253", "169.254.169.254", "169.254.170.2", "172.16.0.0",
		"192.0.0.192", "198.51.100.1", "198.51.100.2", "203.0.113.0", "223.255.255.255", "224.0.0.0", "240.0.0.0", "255.255.255.254", "255.255.255.255", "100.100.100.200", "168.63.129.16"}
	pick := func() netip.Addr {
		b := netip.MustParseAddr(edges[rng.IntN(len(edges))]).As4()
		if rng.IntN(3) == 0 {
			b[rng.IntN(4)] ^= 1 << rng.IntN(8)
		}
		return netip.AddrFrom4(b)
	}
	box := netip.MustParseAddr("10.99.1.3")
	for range 300 {
		var rules []driver.Rule
		for range rng.IntN(8) {
			rules = append(rules, driver.Rule{Prefix: netip.PrefixFrom(pick(), rng.IntN(33)), Ports: []uint16{uint16(1 + rng.IntN(3)), uint16(1 + rng.IntN(3))}})
		}
		r, err := Firewall(rules, site())
		if err != nil {
			t.Fatal(err)
		}
		p, err := egress.Compile(rules, egress.Options{Protect: site().Protect})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			to, port := pick(), uint16(1+rng.IntN(3))
			got, by := r.verdict(t, "forward", packet{in: "eth1", out: "eth0", from: box, to: to, proto: "tcp", port: port})
			d := p.Decide(egress.Request{Addr: to, Port: port})
			if (got == Accept) != d.Allowed {
				t.Fatalf("%s:%d: the firewall says %s (%s), the policy %+v\n%v\n%s", to, port, got, by, d, rules, r)
			}
		}
	}
}

func TestFirewallRefuses(t *testing.T) {
	t.Parallel()
	bad := map[string]func(*Site){
		"one interface":             func(s *Site) { s.Uplink = s.Inside },
		"no interface":              func(s *Site) { s.Inside = "" },
		"a network that is not one": func(s *Site) { s.Sandbox = netip.MustParsePrefix("10.99.1.3/29") },
		"an IPv6 network": func(s *Site) {
			s.Sandbox = netip.MustParsePrefix("fd00::/64")
			s.Gateway = netip.MustParseAddr("fd00::1")
		},
		"a gateway somewhere else":    func(s *Site) { s.Gateway = netip.MustParseAddr("10.99.2.1") },
		"no upstream server":          func(s *Site) { s.Upstream = netip.AddrPort{} },
		"root as the gateway's user":  func(s *Site) { s.UID = 0 },
		"no port to turn aside to":    func(s *Site) { s.ProxyPort = 0 },
		"nothing at all":              func(s *Site) { *s = Site{} },
		"an upstream server by no IP": func(s *Site) { s.Upstream = netip.MustParseAddrPort("[2001:db8::53]:53") },
	}
	for name, f := range bad {
		s := site()
		f(&s)
		if got, err := Firewall(nil, s); !errors.Is(err, driver.CodeInvalid) || got.Table != "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for rule, code := range map[string]driver.Code{"2001:db8::/32": driver.CodeUnsupported, "a.example:22": driver.CodeUnsupported} {
		if _, err := Firewall(ruleList(t, rule), site()); !errors.Is(err, code) {
			t.Errorf("%s: %v", rule, err)
		}
	}
	if _, err := Firewall([]driver.Rule{{Host: "*"}}, site()); !errors.Is(err, driver.CodeInvalid) {
		t.Error(err)
	}
}

func BenchmarkFirewall10000(b *testing.B) {
	var rules []driver.Rule
	for i := range 10_000 {
		rules = append(rules, driver.Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i%220 + 1), byte(i >> 8), byte(i), 0}), 24), Ports: []uint16{uint16(1 + i%50)}})
	}
	for b.Loop() {
		if _, err := Firewall(rules, site()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rules)), "rules")
}
