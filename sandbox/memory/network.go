package memory

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// resolve gives the address of a name that the policy lets the sandbox ask
// for. In mode proxy there is no name service inside.
func (b *box) resolve(host string) (netip.Addr, bool) {
	if b.spec.Network.Mode == driver.Proxy {
		return netip.Addr{}, false
	}
	return b.lookUp(host)
}

// lookUp is resolve, wherever it is asked.
func (b *box) lookUp(host string) (netip.Addr, bool) {
	name, err := driver.CanonicalHost(host)
	if err != nil || !slices.ContainsFunc(b.spec.Network.Egress, func(r driver.Rule) bool { return hostMatches(r, name) }) {
		return netip.Addr{}, false
	}
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	a, ok := b.world.names[name]
	return a, ok
}

// proxied reports whether there is a proxy, in the creator's process.
func (b *box) proxied() bool {
	n := b.spec.Network
	return n.Mode == driver.Proxy && (len(n.Egress) > 0 || n.Learn)
}

// reach reports whether the sandbox gets an answer from host and port: in mode
// proxy through the proxy alone, else without one alone. What the policy
// refuses is counted, where there is something that counts.
func (b *box) reach(host string, port uint16, proxied bool) bool {
	n := b.spec.Network
	if proxied != b.proxied() {
		return false
	}
	a, err := netip.ParseAddr(host)
	allowed, reason := false, "address"
	if err == nil {
		allowed = slices.ContainsFunc(n.Egress, func(r driver.Rule) bool { return prefixMatches(r, a, port) })
	} else if name, err := driver.CanonicalHost(host); err == nil {
		reason = "host"
		if slices.ContainsFunc(n.Egress, func(r driver.Rule) bool { return hostMatches(r, name) && slices.Contains(r.Ports, port) }) {
			var known bool
			a, known = b.lookUp(name)
			opened := driver.Classify(a) == driver.ClassPublic || slices.ContainsFunc(n.Egress, func(r driver.Rule) bool { return prefixMatches(r, a, port) })
			if allowed, reason = known && opened, "protected"; !known {
				reason = "unresolved"
			}
		}
	}
	if len(n.Egress) == 0 {
		reason = "no-rules"
	}
	if !allowed {
		b.deny(host, port, reason)
	}
	return allowed && b.world.Answers(netip.AddrPortFrom(a.Unmap(), port))
}

// maxDenials is how many kinds are told apart.
const maxDenials = 1024

// deny counts a refused attempt.
func (b *box) deny(host string, port uint16, reason string) {
	d := driver.Denial{Host: host[:min(len(host), 256)], Port: port, Reason: reason, Count: 1, First: time.Now(), Last: time.Now()}
	if a, err := netip.ParseAddr(host); err == nil {
		d.Host, d.Addr = "", a.Unmap()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.denied.Told, func(k driver.Denial) bool {
		return k.Host == d.Host && k.Addr == d.Addr && k.Port == d.Port && k.Reason == d.Reason
	})
	switch {
	case at >= 0:
		b.denied.Told[at].Count++
		b.denied.Told[at].Last = d.Last
	case len(b.denied.Told) < maxDenials:
		b.denied.Told = append(b.denied.Told, d)
	default:
		b.denied.Other++
	}
}

// Denied tells what the sandbox was refused, also after its end:
// in mode proxy to its creator alone.
func (s *sandbox) Denied(context.Context) (driver.Denials, error) {
	if !s.creator && s.box.proxied() {
		return driver.Denials{Unknown: true}, nil
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	d := driver.Denials{Told: slices.Clone(s.box.denied.Told), Other: s.box.denied.Other}
	slices.SortFunc(d.Told, func(a, b driver.Denial) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port))
	})
	return d, nil
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
