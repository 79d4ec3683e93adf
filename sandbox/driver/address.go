package driver

import (
	"net/netip"
	"slices"
)

// Class says what kind of place an address is. Everything but public is
// protected: a rule opens it only if it is equal to or narrower than the range
// that makes it so.
type Class string

const (
	ClassPublic      Class = "public"
	ClassPrivate     Class = "private" // RFC 1918, unique local
	ClassShared      Class = "shared"  // carrier-grade NAT, RFC 6598
	ClassLoopback    Class = "loopback"
	ClassLinkLocal   Class = "link-local"
	ClassMetadata    Class = "metadata"    // where clouds hand out credentials
	ClassMulticast   Class = "multicast"   // and broadcast
	ClassUnspecified Class = "unspecified" // and the rest of 0.0.0.0/8
	ClassReserved    Class = "reserved"    // special purpose, never a destination
)

// Range is a protected range and its class.
type Range struct {
	Prefix netip.Prefix
	Class  Class
}

// protected, most specific first. Sources: the IANA special-purpose address
// registries; the metadata addresses of AWS (IMDS, ECS, EKS, IPv6), Google,
// Alibaba, Azure (wire server), Oracle, OpenStack and Scaleway in their
// documentation.
var protected = func() []Range {
	var out []Range
	for _, c := range []struct {
		class    Class
		prefixes []string
	}{
		{ClassMetadata, []string{"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128",
			"192.0.0.192/32", "fd00:c1::a9fe:a9fe/128", "fe80::a9fe:a9fe/128", "169.254.42.42/32", "fd00:42::42/128"}},
		{ClassUnspecified, []string{"0.0.0.0/8", "::/128"}},
		{ClassLoopback, []string{"127.0.0.0/8", "::1/128"}},
		{ClassLinkLocal, []string{"169.254.0.0/16", "fe80::/10"}},
		{ClassPrivate, []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"}},
		{ClassShared, []string{"100.64.0.0/10"}},
		{ClassMulticast, []string{"224.0.0.0/4", "255.255.255.255/32", "ff00::/8"}},
		{ClassReserved, []string{"192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "100::/64", "100:0:0:1::/64", "2001::/32", "2001:2::/48", "2001:10::/28", "5f00::/16"}},
	} {
		for _, p := range c.prefixes {
			out = append(out, Range{netip.MustParsePrefix(p), c.class})
		}
	}
	return out
}()

// Prefixes that carry an IPv4 address inside: NAT64, 6to4, the deprecated
// IPv4-compatible form, the IPv4-mapped one and the IPv4-translated one of
// RFC 2765. What they carry decides.
var carriers = []struct {
	prefix netip.Prefix
	at     int // first byte of the IPv4 address
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
}

// localNAT64 leads wherever its operator's translator does: which of its bytes
// hold the IPv4 address is the operator's choice (RFC 8215, RFC 6052, 2.2), so
// that nothing in it can be known to be public.
var localNAT64 = Range{netip.MustParsePrefix("64:ff9b:1::/48"), ClassPrivate}

// Classify tells the class of an address, of what it carries when it is an
// IPv4 address inside an IPv6 one. The zero Addr, which is no address, is
// reserved.
func Classify(a netip.Addr) Class {
	r, ok := ProtectedBy(a)
	if !ok {
		return ClassPublic
	}
	return r.Class
}

// ProtectedBy gives the range that protects a, and false for a public address.
// Of several it is the narrowest; where a is an IPv6 address that carries an
// IPv4 one, it is the range of those that carry the same protected range. The
// zero Addr is in a range that has no prefix, so that nothing opens it.
func ProtectedBy(a netip.Addr) (Range, bool) {
	if !a.IsValid() {
		return Range{Class: ClassReserved}, true
	}
	a = a.Unmap().WithZone("")
	for _, r := range protected {
		if r.Prefix.Contains(a) {
			return r, true
		}
	}
	if a.Is4() {
		return Range{}, false
	}
	for _, c := range carriers {
		if !c.prefix.Contains(a) {
			continue
		}
		b := a.As16()
		inner, ok := ProtectedBy(netip.AddrFrom4([4]byte(b[c.at : c.at+4])))
		if !ok && localNAT64.Prefix.Contains(a) {
			return localNAT64, true
		}
		if !ok {
			return Range{}, false
		}
		return Range{netip.PrefixFrom(a, c.at*8+inner.Prefix.Bits()).Masked(), inner.Class}, true
	}
	return Range{}, false
}

// Opens reports whether a rule for p, in canonical form, reaches a: it holds
// a, and is equal to or narrower than the range that protects a, if one does.
func Opens(p netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !p.Contains(a) {
		return false
	}
	r, ok := ProtectedBy(a)
	return !ok || r.Prefix.IsValid() && r.Prefix.Bits() <= p.Bits()
}

// Touches lists the protected ranges that p overlaps, those inside an
// embedding IPv6 prefix included, each once.
func Touches(p netip.Prefix) []Range {
	var out []Range
	for _, r := range append(Protected(), localNAT64) {
		if r.Prefix.Overlaps(p) {
			out = append(out, r)
		}
	}
	for _, c := range carriers {
		if !c.prefix.Overlaps(p) {
			continue
		}
		inner := netip.PrefixFrom(netip.AddrFrom4([4]byte{}), 0)
		if skip := c.at * 8; p.Bits() > skip {
			b := p.Addr().As16()
			inner = netip.PrefixFrom(netip.AddrFrom4([4]byte(b[c.at:c.at+4])), min(p.Bits()-skip, 32))
		}
		for _, r := range Touches(inner) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// Protected lists every protected range, most specific class first, without
// those inside an embedding IPv6 prefix.
func Protected() []Range { return slices.Clone(protected) }
