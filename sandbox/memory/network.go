package memory

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// resolve gives the address of a name that the policy lets the sandbox ask
// for.
func (b *box) resolve(host string) (netip.Addr, bool) {
	name, err := driver.CanonicalHost(host)
	if err != nil || !slices.ContainsFunc(b.spec.Network.Egress, func(r driver.Rule) bool { return hostMatches(r, name) }) {
		return netip.Addr{}, false
	}
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	a, ok := b.world.names[name]
	return a, ok
}

// reach reports whether the sandbox gets an answer from host and port.
func (b *box) reach(host string, port uint16) bool {
	rules := b.spec.Network.Egress
	a, err := netip.ParseAddr(host)
	allowed := false
	if err == nil {
		allowed = slices.ContainsFunc(rules, func(r driver.Rule) bool { return prefixMatches(r, a, port) })
	} else if name, err := driver.CanonicalHost(host); err == nil {
		var known bool
		a, known = b.resolve(name)
		allowed = known && slices.ContainsFunc(rules, func(r driver.Rule) bool { return hostMatches(r, name) && slices.Contains(r.Ports, port) }) &&
			(driver.Classify(a) == driver.ClassPublic || slices.ContainsFunc(rules, func(r driver.Rule) bool { return prefixMatches(r, a, port) }))
	}
	return allowed && b.world.Answers(netip.AddrPortFrom(a.Unmap(), port))
}

func hostMatches(r driver.Rule, name string) bool {
	if rest, ok := strings.CutPrefix(r.Host, "*"); ok {
		return strings.HasSuffix(name, rest) && len(name) > len(rest)
	}
	return r.Host != "" && r.Host == name
}

// prefixMatches holds a rule to what it may open: a protected address only by
// a range equal to or narrower than the one that protects it.
func prefixMatches(r driver.Rule, a netip.Addr, port uint16) bool {
	a = a.Unmap()
	if !r.Prefix.IsValid() || !r.Prefix.Contains(a) || !slices.Contains(r.Ports, port) {
		return false
	}
	if driver.Classify(a) == driver.ClassPublic {
		return true
	}
	return slices.ContainsFunc(driver.Protected(), func(p driver.Range) bool {
		return p.Class == driver.Classify(a) && p.Prefix.Contains(a) && p.Prefix.Bits() <= r.Prefix.Bits()
	})
}
