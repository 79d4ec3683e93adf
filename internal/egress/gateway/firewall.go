package gateway

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Site is where a gateway stands.
type Site struct {
	Inside    string         // interface to the sandbox
	Uplink    string         // interface to everything else
	Sandbox   netip.Prefix   // the sandbox's network
	Gateway   netip.Addr     // the gateway's own address in it, and the sandbox's resolver
	Upstream  netip.AddrPort // the name server that the resolver asks
	UID       uint32         // whose processes may speak: resolver and router
	ProxyPort uint16         // where the router listens
	Protect   []driver.Range // as in egress.Options
}

// Priorities of nftables: before everything, destination NAT, filter, source
// NAT.
const (
	beforeAll = -300
	beforeNAT = -100
	filter    = 0
	afterNAT  = 100
)

// Firewall is the packet filter of a gateway: everything is dropped, in all
// three directions and for both IP versions, but
//
//   - what the rules for CIDRs allow, straight through: first those that name a
//     protected range, then protected ranges are dropped, then the others;
//   - TCP to the ports of rules for hosts, turned aside to the router;
//   - DNS to the gateway's own resolver;
//   - what resolver and router send on: to the upstream server, and to the
//     ports of rules for hosts at addresses that are not protected. Whoever
//     takes over these processes gets no further;
//
// and of all that is let through, so many connections begin and no more: see
// BeginRate.
//
// It is the same for the same rules. A rule for an IPv6 CIDR is refused (code
// unsupported), as Mechanisms does.
func Firewall(rules []driver.Rule, at Site) (Ruleset, error) {
	rules, err := driver.Canonical(rules)
	if err != nil {
		return Ruleset{}, err
	}
	if _, err := egress.Mechanisms(driver.Network{Egress: rules}); err != nil {
		return Ruleset{}, err
	}
	if err := at.validate(); err != nil {
		return Ruleset{}, err
	}
	f := firewall{Site: at}
	f.protect()
	for _, r := range rules {
		if r.Host != "" {
			f.hostPorts = append(f.hostPorts, r.Ports...)
		}
	}
	slices.Sort(f.hostPorts)
	f.hostPorts = slices.Compact(f.hostPorts)
	f.open(rules)
	return f.table(), nil
}

func (s Site) validate() error {
	switch {
	case s.Inside == "" || s.Uplink == "" || s.Inside == s.Uplink:
		return driver.Invalid("site", "the two interfaces are not two", "name the interface to the sandbox and the one to everything else")
	case !s.Sandbox.IsValid() || !s.Sandbox.Addr().Is4() || s.Sandbox != s.Sandbox.Masked() || !s.Sandbox.Contains(s.Gateway):
		return driver.Invalid("site", "the gateway is not in the sandbox's IPv4 network", "give the network's masked prefix and the gateway's address in it")
	case !s.Upstream.Addr().Is4() || s.Upstream.Port() == 0 || s.ProxyPort == 0 || s.UID == 0:
		return driver.Invalid("site", "an address, a port or the user is missing", "give the upstream server with its port, the router's port, and a user that is not root")
	}
	return nil
}

// opened are addresses that are open on the same ports.
type opened struct {
	set   string
	ports []uint16
}

type firewall struct {
	Site
	protected []driver.Range // IPv4, the narrowest first
	hostPorts []uint16
	sets      []Set
	named     []opened // by rules that name a protected range
	others    []opened
}

const (
	protectedSet = "protected"
	metadataSet  = "metadata" // of these, told apart: who floods the others hides no attempt at it
)

func (f *firewall) protect() {
	for _, r := range append(driver.Protected(), f.Protect...) {
		if r.Prefix.Addr().Is4() {
			f.protected = append(f.protected, driver.Range{Prefix: r.Prefix.Masked(), Class: r.Class})
		}
	}
	slices.SortStableFunc(f.protected, func(a, b driver.Range) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	var all, metadata []netip.Prefix
	for _, r := range f.protected {
		all = append(all, r.Prefix)
		if r.Class == driver.ClassMetadata {
			metadata = append(metadata, r.Prefix)
		}
	}
	f.sets = []Set{{protectedSet, egress.SpansOf(all...)}, {metadataSet, egress.SpansOf(metadata...)}}
}

// open sorts rules for CIDRs into sets, by their ports. Of a rule that names a
// protected range, what is protected inside by a narrower range is left out.
func (f *firewall) open(rules []driver.Rule) {
	named, others := map[string][]driver.Rule{}, map[string][]driver.Rule{}
	for _, r := range rules {
		if r.Host != "" {
			continue
		}
		into := others
		if slices.ContainsFunc(f.protected, func(p driver.Range) bool { return within(r.Prefix, p.Prefix) }) {
			into = named
		}
		key := fmt.Sprint(r.Ports)
		into[key] = append(into[key], r)
	}
	f.named = f.group("named", named)
	f.others = f.group("open", others)
}

func within(p, wider netip.Prefix) bool { return wider.Bits() <= p.Bits() && wider.Overlaps(p) }

func (f *firewall) group(name string, by map[string][]driver.Rule) []opened {
	var groups [][]driver.Rule
	for _, rules := range by {
		groups = append(groups, rules)
	}
	slices.SortFunc(groups, func(a, b []driver.Rule) int { return slices.Compare(a[0].Ports, b[0].Ports) })
	var out []opened
	for _, rules := range groups {
		var parts []egress.Spans
		for _, r := range rules {
			var closed []netip.Prefix
			for _, p := range f.protected {
				if p.Prefix.Overlaps(r.Prefix) && !within(r.Prefix, p.Prefix) {
					closed = append(closed, p.Prefix)
				}
			}
			parts = append(parts, egress.SpansOf(r.Prefix).Minus(egress.SpansOf(closed...)))
		}
		spans := egress.Union(parts...)
		if len(spans) == 0 {
			continue
		}
		o := opened{fmt.Sprintf("%s_%d", name, len(out)+1), rules[0].Ports}
		f.sets = append(f.sets, Set{o.set, spans})
		out = append(out, o)
	}
	return out
}

// straight are the rules for what CIDRs open, in the order that protects; base
// is what they have in common, protected is what becomes of what is protected.
func (f *firewall) straight(base PacketRule, protected Verdict) []PacketRule {
	var out []PacketRule
	add := func(set string, ports []uint16, v Verdict, why string) {
		r := base
		r.ToSet, r.Verdict, r.Why = set, v, why
		if ports != nil {
			r.Proto, r.Ports = "tcp", ports
		}
		out = append(out, r)
	}
	for _, o := range f.named {
		add(o.set, o.ports, Accept, "a rule names this protected range")
	}
	if protected == Drop {
		add(metadataSet, nil, Note, "told")
		add(metadataSet, nil, Drop, "metadata")
		add(protectedSet, nil, Note, "told")
	}
	add(protectedSet, nil, protected, "protected")
	for _, o := range f.others {
		add(o.set, o.ports, Accept, "a rule for CIDRs")
	}
	return out
}

func (f *firewall) table() Ruleset {
	v6 := PacketRule{IPv6: true, Verdict: Drop, Why: "there is no IPv6"}
	inside := PacketRule{In: f.Inside, From: f.Sandbox}
	through := PacketRule{In: f.Inside, Out: f.Uplink, From: f.Sandbox}
	own := PacketRule{Out: f.Uplink, UID: &f.UID}
	toGateway := netip.PrefixFrom(f.Gateway, 32)
	upstream := netip.PrefixFrom(f.Upstream.Addr(), 32)

	spoofed := Chain{"spoofed", "filter", "prerouting", beforeAll, Accept, []PacketRule{v6,
		{In: f.Inside, NotFrom: f.Sandbox, Verdict: Drop, Why: "not the sandbox's address"}}}

	aside := Chain{Name: "aside", Type: "nat", Hook: "prerouting", Priority: beforeNAT, Policy: Accept}
	aside.Rules = append(aside.Rules, PacketRule{In: f.Inside, To: toGateway, Verdict: Accept, Why: "the gateway itself"})
	aside.Rules = append(aside.Rules, f.straight(inside, Accept)...)
	input := Chain{Name: "input", Type: "filter", Hook: "input", Priority: filter, Policy: Drop, Rules: []PacketRule{v6}}
	for _, proto := range []string{"udp", "tcp"} {
		r := inside
		r.To, r.Proto, r.Ports, r.Verdict, r.Why = toGateway, proto, []uint16{53}, Accept, "the resolver"
		input.Rules = append(input.Rules, r)
	}
	output := Chain{Name: "output", Type: "filter", Hook: "output", Priority: filter, Policy: Drop, Rules: []PacketRule{v6,
		{Out: f.Inside, Established: true, Verdict: Accept, Why: "answers to the sandbox"}}}
	forward := Chain{Name: "forward", Type: "filter", Hook: "forward", Priority: filter, Policy: Drop, Rules: []PacketRule{v6,
		{In: f.Uplink, Out: f.Inside, Established: true, Verdict: Accept, Why: "answers to the sandbox"}}}
	forward.Rules = append(forward.Rules, f.straight(through, Drop)...)
	told := inside
	told.Verdict, told.Why = Note, "told"
	forward.Rules = append(forward.Rules, told)

	if len(f.hostPorts) > 0 {
		r := inside
		r.Proto, r.Ports, r.Verdict, r.ToPort, r.Why = "tcp", f.hostPorts, Redirect, f.ProxyPort, "ports of rules for hosts"
		aside.Rules = append(aside.Rules, r)
		r = inside
		r.Proto, r.Ports, r.Redirected, r.Verdict, r.Why = "tcp", []uint16{f.ProxyPort}, true, Accept, "the router"
		input.Rules = append(input.Rules, r)
		f.ask(&input, &output, own, upstream)
		r = own
		r.ToSet, r.Verdict, r.Why = protectedSet, Drop, "protected"
		output.Rules = append(output.Rules, r)
		r = own
		r.Proto, r.Ports, r.Verdict, r.Why = "tcp", f.hostPorts, Accept, "the router's connections"
		output.Rules = append(output.Rules, r)
		input.Rules = append(input.Rules, PacketRule{In: f.Uplink, Established: true, Verdict: Accept, Why: "answers to resolver and router"})
	}
	begins := PacketRule{Out: f.Uplink, Proto: "tcp", New: true}
	few, surplus := begins, begins
	few.Few, few.Verdict, few.Why = true, Accept, "not too many connections"
	surplus.Verdict, surplus.Why = Drop, "too many connections"
	told = begins
	told.From, told.Verdict, told.Why = f.Sandbox, Note, "told" // the router tells its own
	begun := Chain{"begun", "filter", "postrouting", filter, Accept, []PacketRule{
		{Established: true, Verdict: Accept, Why: "it has begun"}, few, told, surplus}}
	post := Chain{"masked", "nat", "postrouting", afterNAT, Accept, []PacketRule{
		{Out: f.Uplink, From: f.Sandbox, Verdict: Masquerade, Why: "the sandbox's address stays inside"}}}
	return Ruleset{Table: "sandboxio", Sets: f.sets, Chains: []Chain{spoofed, aside, input, forward, output, begun, post}}
}

// ask lets the resolver reach the upstream server, which on some engines is on
// the gateway's own loopback interface.
func (f *firewall) ask(input, output *Chain, own PacketRule, upstream netip.Prefix) {
	for _, proto := range []string{"udp", "tcp"} {
		r := own
		r.To, r.Proto, r.Ports, r.Verdict, r.Why = upstream, proto, []uint16{f.Upstream.Port()}, Accept, "the upstream name server"
		if upstream.Addr().IsLoopback() {
			r.Out, r.Ports = "lo", nil // the engine turns the port to another one before this
		}
		output.Rules = append(output.Rules, r)
	}
	if upstream.Addr().IsLoopback() {
		input.Rules = append(input.Rules, PacketRule{In: "lo", Verdict: Accept, Why: "the engine's name server"})
		output.Rules = append(output.Rules, PacketRule{Out: "lo", Established: true, Verdict: Accept, Why: "the engine's name server"})
	}
}
