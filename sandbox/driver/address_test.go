package driver_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestClassify(t *testing.T) {
	for addr, want := range map[string]driver.Class{
		"1.1.1.1": driver.ClassPublic, "2606:4700::1111": driver.ClassPublic, "168.63.129.15": driver.ClassPublic,
		"10.0.0.1": driver.ClassPrivate, "172.16.0.1": driver.ClassPrivate, "172.31.255.255": driver.ClassPrivate, "172.32.0.0": driver.ClassPublic,
		"192.168.1.1": driver.ClassPrivate, "fd12::1": driver.ClassPrivate, "fec0::1": driver.ClassPrivate,
		"100.64.0.1": driver.ClassShared, "100.100.100.200": driver.ClassMetadata,
		"127.0.0.1": driver.ClassLoopback, "127.255.255.255": driver.ClassLoopback, "::1": driver.ClassLoopback,
		"169.254.1.1": driver.ClassLinkLocal, "fe80::1": driver.ClassLinkLocal, "fe80::1%eth0": driver.ClassLinkLocal, "febf::1": driver.ClassLinkLocal,
		"169.254.169.254": driver.ClassMetadata, "169.254.170.2": driver.ClassMetadata, "fd00:ec2::254": driver.ClassMetadata, "192.0.0.192": driver.ClassMetadata, "fe80::a9fe:a9fe": driver.ClassMetadata,
		"fd00:c1::a9fe:a9fe": driver.ClassMetadata, "169.254.42.42": driver.ClassMetadata, "5f00::1": driver.ClassReserved, "168.63.129.16": driver.ClassMetadata,
		"224.0.0.1": driver.ClassMulticast, "255.255.255.255": driver.ClassMulticast, "ff02::1": driver.ClassMulticast,
		"0.0.0.0": driver.ClassUnspecified, "0.1.2.3": driver.ClassUnspecified, "::": driver.ClassUnspecified,
		"240.0.0.1": driver.ClassReserved, "255.255.255.254": driver.ClassReserved, "198.18.0.1": driver.ClassReserved, "2001::1": driver.ClassReserved,
		// What an IPv6 address carries decides.
		"::ffff:169.254.169.254": driver.ClassMetadata, "::ffff:10.0.0.1": driver.ClassPrivate, "::ffff:1.1.1.1": driver.ClassPublic,
		"64:ff9b::169.254.169.254": driver.ClassMetadata, "64:ff9b::1.1.1.1": driver.ClassPublic, "64:ff9b:1::127.0.0.1": driver.ClassLoopback,
		"64:ff9b:1::1.1.1.1": driver.ClassPrivate, "64:ff9b:1:a9fe:a9:fe00::": driver.ClassUnspecified, "::ffff:0:169.254.169.254": driver.ClassMetadata, "::ffff:0:1.1.1.1": driver.ClassPublic,
		"2002:a00:1::": driver.ClassPrivate, "2002:101:101::": driver.ClassPublic, "::10.0.0.1": driver.ClassPrivate,
	} {
		if got := driver.Classify(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Classify(%s) = %s, want %s", addr, got, want)
		}
	}
}

// What protects an address is told in the address's own family, and only a
// rule that is at most as wide opens it.
func TestOpens(t *testing.T) {
	for _, c := range []struct {
		name, rule, addr string
		want             bool
	}{
		{"a public address by its range", "203.0.113.0/24", "203.0.113.9", true},
		{"a public address by every address", "0.0.0.0/0", "203.0.113.9", true},
		{"another family's", "0.0.0.0/0", "2001:db8::1", false},
		{"the mapped form of an address in the range", "203.0.113.0/24", "::ffff:203.0.113.9", true},
		{"an address with a zone", "fe80::/10", "fe80::1%eth0", true},
		{"an address outside", "203.0.113.0/24", "203.0.114.0", false},
		{"a private address by every address", "0.0.0.0/0", "10.0.0.1", false},
		{"a private address by its whole range", "10.0.0.0/8", "10.0.0.1", true},
		{"a private address by a part of its range", "10.1.0.0/16", "10.1.0.1", true},
		{"a private address by a range that begins in it and is wider", "10.0.0.0/7", "10.0.0.1", false},
		{"metadata by all link-local addresses", "169.254.0.0/16", "169.254.169.254", false},
		{"its neighbour by all link-local addresses", "169.254.0.0/16", "169.254.169.253", true},
		{"metadata by its own address", "169.254.169.254/32", "169.254.169.254", true},
		{"IPv6 metadata by unique local addresses (M14)", "fc00::/7", "fd00:ec2::254", false},
		{"IPv6 link-local by every address (M14)", "::/0", "fe80::1", false},
		{"NAT64 metadata by all of NAT64", "64:ff9b::/96", "64:ff9b::169.254.169.254", false},
		{"NAT64 metadata by its own address", "64:ff9b::169.254.169.254/128", "64:ff9b::169.254.169.254", true},
		{"NAT64 private by the carried range", "64:ff9b::10.0.0.0/104", "64:ff9b::10.0.0.1", true},
		{"6to4 private by the carried range", "2002:a00::/24", "2002:a01:203::1", true},
		{"6to4 private by all of 6to4", "2002::/16", "2002:a01:203::1", false},
		{"NAT64 of a public address", "64:ff9b::/96", "64:ff9b::203.0.113.9", true},
		{"local NAT64 of a public address by its own range", "64:ff9b:1::/48", "64:ff9b:1::203.0.113.9", true},
		{"local NAT64 of a public address by a wider one", "64:ff9b::/32", "64:ff9b:1::203.0.113.9", false},
		{"broadcast by the last half of all addresses (M09)", "128.0.0.0/1", "255.255.255.255", false},
		{"the last address by itself (M09)", "255.255.255.255/32", "255.255.255.255", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := driver.Opens(netip.MustParsePrefix(c.rule), netip.MustParseAddr(c.addr)); got != c.want {
				t.Errorf("Opens(%s, %s) = %v", c.rule, c.addr, got)
			}
		})
	}
	if driver.Opens(netip.MustParsePrefix("0.0.0.0/0"), netip.Addr{}) {
		t.Error("the zero Addr is opened")
	}
}

// The range that protects an address holds it, and all it holds is protected.
func TestProtectedByHoldsTheAddress(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, r := range driver.Protected() {
		for range 500 {
			b := r.Prefix.Addr().AsSlice()
			for i := r.Prefix.Bits(); i < len(b)*8; i++ {
				b[i/8] |= byte(rng.IntN(2)) << (7 - i%8)
			}
			inside, _ := netip.AddrFromSlice(b)
			carried := []netip.Addr{inside}
			if inside.Is4() {
				for _, c := range []string{"64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0", "::"} {
					w := netip.MustParseAddr(c).As16()
					copy(w[12:], b)
					carried = append(carried, netip.AddrFrom16(w))
				}
				w := netip.MustParseAddr("2002::").As16()
				copy(w[2:], b)
				carried = append(carried, netip.AddrFrom16(w))
			}
			for _, a := range carried {
				by, ok := driver.ProtectedBy(a)
				if !ok || !by.Prefix.Contains(a) || by.Prefix != by.Prefix.Masked() || by.Class != driver.Classify(a) {
					t.Fatalf("ProtectedBy(%s) = %v, %v; Classify = %s", a, by, ok, driver.Classify(a))
				}
			}
		}
	}
}

func TestNoAddressIsNotPublic(t *testing.T) {
	if got := driver.Classify(netip.Addr{}); got == driver.ClassPublic {
		t.Errorf("the zero Addr is %s", got)
	}
}

// A range that holds a protected address is known to touch what protects it,
// whatever its length, its end at 255.255.255.255 included (M09).
func TestTouchesKnowsEveryProtectedAddress(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(p netip.Prefix, a netip.Addr) {
		t.Helper()
		if !p.Contains(a) {
			t.Fatalf("%s does not contain %s", p, a)
		}
		class := driver.Classify(a)
		if class == driver.ClassPublic {
			return
		}
		for _, r := range driver.Touches(p) {
			if r.Class == class {
				return
			}
		}
		t.Errorf("%s holds %s, which is %s; Touches(%s) = %v", p, a, class, p, driver.Touches(p))
	}
	interesting := []string{"255.255.255.255", "255.0.0.0", "0.0.0.0", "169.254.169.254", "10.0.0.0", "127.0.0.1", "::", "::1", "fe80::1", "fd00:ec2::254",
		"ffff::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "64:ff9b:1:808:8:800:808:808", "::ffff:0:10.0.0.1", "2002:a9fe:a9fe::1", "::10.0.0.1"}
	for _, s := range interesting {
		a := netip.MustParseAddr(s)
		for bits := range a.BitLen() + 1 {
			check(netip.PrefixFrom(a, bits).Masked(), a)
			check(netip.PrefixFrom(a, bits), a)
		}
	}
	bases := driver.Protected()
	for range 50_000 {
		base := bases[rng.IntN(len(bases))].Prefix.Addr().AsSlice()
		// A random address near a protected range, and a random prefix of it.
		keep := rng.IntN(len(base) + 1)
		random := make([]byte, 16)
		binary.BigEndian.PutUint64(random, rng.Uint64())
		binary.BigEndian.PutUint64(random[8:], rng.Uint64())
		copy(base[keep:], random)
		a, _ := netip.AddrFromSlice(base)
		if rng.IntN(4) == 0 && a.Is4() {
			a = netip.AddrFrom16(a.As16())
		}
		check(netip.PrefixFrom(a, rng.IntN(a.BitLen()+1)), a)
	}
}

func TestTouchesNothingWhereAllIsPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.0/24", "8.0.0.0/7", "2606:4700::/32", "2002:101::/32", "64:ff9b::1.0.0.0/104", "128.0.0.0/3"} {
		if got := driver.Touches(netip.MustParsePrefix(s)); len(got) != 0 {
			t.Errorf("Touches(%s) = %v", s, got)
		}
	}
}

func TestTouchesNamesEachRangeOnce(t *testing.T) {
	seen := map[driver.Range]bool{}
	for _, r := range driver.Touches(netip.MustParsePrefix("::/0")) {
		if seen[r] {
			t.Errorf("%v twice", r)
		}
		seen[r] = true
	}
	for _, r := range driver.Protected() {
		if !seen[r] {
			t.Errorf("::/0 does not touch %v", r)
		}
	}
}
