package egress

import (
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Policy answers whether a request is allowed. It does not change, and is safe
// for concurrent use. The nil Policy allows nothing.
type Policy struct {
	rules   []driver.Rule
	exact   map[string]int
	below   map[string]int // of "*.example.com", by "example.com"
	depths  [2]uint64      // which numbers of dots the keys of below have
	deepest int            // and the largest
	nodes   []node         // rules with a prefix, by first address, then wider first
	protect []driver.Range // beyond driver.Protected
}

// node is a rule with a prefix. Prefixes nest or are apart, so that those which
// hold an address are a chain of parents.
type node struct {
	prefix netip.Prefix
	rule   int
	parent int // -1 when no other prefix holds this one
}

// Options are what a Policy knows beyond its rules.
type Options struct {
	// Protect are ranges to protect beside driver.Protected: the addresses of
	// the host, and of the networks that belong to others on it. Like those,
	// they are opened by a rule that is equal to one or narrower.
	Protect []driver.Range
}

// Compile makes a Policy of rules in any form. Problems are driver.Canonical's.
func Compile(rules []driver.Rule, opts Options) (*Policy, error) {
	rules, err := driver.Canonical(rules)
	if err != nil {
		return nil, err
	}
	p := &Policy{rules: rules, exact: make(map[string]int, len(rules)), below: map[string]int{}, protect: slices.Clone(opts.Protect)}
	for i := range p.protect {
		p.protect[i].Prefix = p.protect[i].Prefix.Masked()
	}
	slices.SortStableFunc(p.protect, func(a, b driver.Range) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	var open []int // the chain of prefixes that may hold the next
	for i, r := range rules {
		base, wild := strings.CutPrefix(r.Host, "*.")
		switch {
		case wild:
			p.below[base] = i
			dots := strings.Count(base, ".")
			p.depths[dots/64] |= 1 << (dots % 64)
			p.deepest = max(p.deepest, dots)
		case r.Host != "":
			p.exact[r.Host] = i
		default: // in order of first address and length: driver.Canonical's
			for len(open) > 0 && !p.nodes[open[len(open)-1]].prefix.Contains(r.Prefix.Addr()) {
				open = open[:len(open)-1]
			}
			parent := -1
			if len(open) > 0 {
				parent = open[len(open)-1]
			}
			open = append(open, len(p.nodes))
			p.nodes = append(p.nodes, node{r.Prefix, i, parent})
		}
	}
	return p, nil
}

// Rules are the rules in the form of driver.Canonical.
func (p *Policy) Rules() []driver.Rule {
	if p == nil {
		return nil
	}
	return slices.Clone(p.rules)
}

// Request is one wish of a program, over TCP.
type Request struct {
	Host string     // what it is called by TLS, HTTP or DNS; "" for a bare address
	Addr netip.Addr // where it leads; the zero Addr while that is not known
	Port uint16
}

// Decision is the answer to a Request.
type Decision struct {
	Allowed bool
	Reason  Reason
	Rule    int // index in Rules of what allowed it; -1 when refused
}

func refuse(r Reason) Decision { return Decision{Reason: r, Rule: -1} }

// Decide answers a request. With a Host, a rule must name the host on the
// port; with an Addr too, the address must be public or be opened by a rule
// that names it: whoever asks has to know that it was resolved for the host.
// With an Addr alone, a rule must hold the address on the port.
func (p *Policy) Decide(r Request) Decision {
	if r.Port == 0 || r.Host == "" && !r.Addr.IsValid() {
		return refuse(Malformed)
	}
	host := ""
	if r.Host != "" {
		var err error
		if host, err = driver.CanonicalHost(r.Host); err != nil {
			return refuse(Malformed)
		}
	}
	switch {
	case p == nil || len(p.rules) == 0:
		return refuse(NoRules)
	case host == "":
		return p.address(r.Addr, r.Port)
	}
	d := p.host(host, r.Port)
	if !d.Allowed || !r.Addr.IsValid() {
		return d
	}
	if _, protected := p.protectedBy(r.Addr); protected && !p.address(r.Addr, r.Port).Allowed {
		return refuse(Protected)
	}
	return d
}

// Resolve answers whether a name may be asked for: whether a rule names the
// host on any port.
func (p *Policy) Resolve(host string) Decision {
	name, err := driver.CanonicalHost(host)
	switch {
	case err != nil:
		return refuse(Malformed)
	case p == nil || len(p.rules) == 0:
		return refuse(NoRules)
	}
	return p.host(name, anyPort)
}

// Answer answers whether a name that may be asked for may lead to a: whether a
// is public, or a rule that names it opens it on any port.
func (p *Policy) Answer(a netip.Addr) bool {
	if p == nil || !a.IsValid() {
		return false
	}
	_, protected := p.protectedBy(a)
	return !protected || p.address(a, anyPort).Allowed
}

// Reach answers whether a request that was allowed before may still lead to an
// address, now that more may be protected: whether the address is public, or a
// rule that names it opens it on this port.
func (p *Policy) Reach(to netip.AddrPort) bool {
	if p == nil || !to.IsValid() || to.Port() == anyPort {
		return false
	}
	_, protected := p.protectedBy(to.Addr())
	return !protected || p.address(to.Addr(), to.Port()).Allowed
}

// anyPort stands for a port that is not known yet.
const anyPort = 0

// host finds the rule for a canonical name, the most specific first.
func (p *Policy) host(name string, port uint16) Decision {
	reason := Host
	try := func(i int, ok bool) bool {
		if !ok {
			return false
		}
		reason = Port
		return has(p.rules[i].Ports, port)
	}
	if i, ok := p.exact[name]; try(i, ok) {
		return Decision{true, Allowed, i}
	}
	found, dots := -1, 0
	for at := len(name) - 1; at >= 0 && dots <= p.deepest; at-- {
		if name[at] != '.' {
			continue
		}
		if p.depths[dots/64]&(1<<(dots%64)) != 0 {
			if i, ok := p.below[name[at+1:]]; try(i, ok) {
				found = i // and a longer one later
			}
		}
		dots++
	}
	if found >= 0 {
		return Decision{true, Allowed, found}
	}
	return refuse(reason)
}

// address finds the narrowest rule that opens a on port.
func (p *Policy) address(a netip.Addr, port uint16) Decision {
	a = a.Unmap().WithZone("")
	by, protected := p.protectedBy(a)
	reason := Address
	for n := p.innermost(a); n >= 0; n = p.nodes[n].parent {
		at := p.nodes[n]
		switch {
		case !at.prefix.Contains(a):
		case protected && !names(at.prefix, by.Prefix):
			if reason == Address {
				reason = Protected
			}
		case has(p.rules[at.rule].Ports, port):
			return Decision{true, Allowed, at.rule}
		default:
			reason = Port
		}
	}
	if reason == Address && protected {
		reason = Protected
	}
	return refuse(reason)
}

// innermost is the last node that begins at or before a: it, or one of its
// parents, is the narrowest that holds a.
func (p *Policy) innermost(a netip.Addr) int {
	return sort.Search(len(p.nodes), func(i int) bool { return p.nodes[i].prefix.Addr().Compare(a) > 0 }) - 1
}

// carriers are the prefixes whose addresses carry an IPv4 one, and its first
// byte, as driver.ProtectedBy knows them: NAT64, 6to4, and the IPv4-compatible
// and IPv4-translated forms. The mapped one is unmapped before.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
}

// protectedBy is driver.ProtectedBy with the ranges of Options, which hold for
// an IPv4 address that an IPv6 one carries too.
func (p *Policy) protectedBy(a netip.Addr) (driver.Range, bool) {
	a = a.Unmap().WithZone("")
	by, ok := driver.ProtectedBy(a)
	r, found := p.optional(a)
	if a.Is6() && !found {
		for _, c := range carriers {
			if !c.prefix.Contains(a) {
				continue
			}
			b := a.As16()
			if r, found = p.optional(netip.AddrFrom4([4]byte(b[c.at : c.at+4]))); found {
				r.Prefix = netip.PrefixFrom(a, c.at*8+r.Prefix.Bits()).Masked()
				break
			}
		}
	}
	if found && (!ok || by.Prefix.IsValid() && r.Prefix.Bits() > by.Prefix.Bits()) {
		return r, true
	}
	return by, ok
}

// optional is the narrowest range of Options that holds a.
func (p *Policy) optional(a netip.Addr) (driver.Range, bool) {
	for _, r := range p.protect {
		if r.Prefix.Contains(a) {
			return r, true
		}
	}
	return driver.Range{}, false
}

// names reports whether a rule for p names the protected range, or a part of
// it, rather than reaching across it.
func names(p, protected netip.Prefix) bool {
	return protected.IsValid() && protected.Bits() <= p.Bits() && protected.Overlaps(p)
}

func has(ports []uint16, port uint16) bool {
	_, ok := slices.BinarySearch(ports, port)
	return ok || port == anyPort
}
