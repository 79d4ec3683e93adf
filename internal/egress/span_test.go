package egress_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

func spans(words ...string) egress.Spans {
	var all []netip.Prefix
	for _, w := range words {
		all = append(all, netip.MustParsePrefix(w))
	}
	return egress.SpansOf(all...)
}

func text(s egress.Spans) []string {
	var out []string
	for _, r := range s {
		out = append(out, r.First.String()+"-"+r.Last.String())
	}
	return out
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   egress.Spans
		want []string
	}{
		{"all of IPv4 (M09)", spans("0.0.0.0/0"), []string{"0.0.0.0-255.255.255.255"}},
		{"the halves are one (M09)", spans("128.0.0.0/1", "0.0.0.0/1"), []string{"0.0.0.0-255.255.255.255"}},
		{"the last address is in the last range (M09)", spans("255.0.0.0/8", "255.255.255.255/32"), []string{"255.0.0.0-255.255.255.255"}},
		{"all of IPv6 (M09)", spans("::/0"), []string{"::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}},
		{"the last IPv6 range (M09)", spans("ffff::/16"), []string{"ffff::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}},
		{"one address", spans("203.0.113.7/32"), []string{"203.0.113.7-203.0.113.7"}},
		{"neighbours are one", spans("10.0.0.0/9", "10.128.0.0/9"), []string{"10.0.0.0-10.255.255.255"}},
		{"what is apart stays apart", spans("10.0.0.0/32", "10.0.0.2/32"), []string{"10.0.0.0-10.0.0.0", "10.0.0.2-10.0.0.2"}},
		{"families do not touch", spans("255.255.255.255/32", "::/128"), []string{"255.255.255.255-255.255.255.255", "::-::"}},
		{"the inside is cut out", spans("10.0.0.0/8").Minus(spans("10.64.0.0/10")), []string{"10.0.0.0-10.63.255.255", "10.128.0.0-10.255.255.255"}},
		{"the last address is cut off (M09)", spans("255.255.255.254/31").Minus(spans("255.255.255.255/32")), []string{"255.255.255.254-255.255.255.254"}},
		{"the first address is cut off", spans("0.0.0.0/31").Minus(spans("0.0.0.0/32")), []string{"0.0.0.1-0.0.0.1"}},
		{"nothing remains", spans("10.0.0.0/8").Minus(spans("0.0.0.0/0")), nil},
		{"the other family is not cut", spans("10.0.0.0/8").Minus(spans("::/0")), []string{"10.0.0.0-10.255.255.255"}},
		{"nothing", egress.SpansOf(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, text(c.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpansAreTheSetsTheyStandFor(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	// Sixteen addresses at the very beginning, or the very end, of a family.
	prefix := func() netip.Prefix {
		a := []netip.Addr{netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("255.255.255.240"), netip.MustParseAddr("::"), netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0")}[rng.IntN(4)]
		b := a.AsSlice()
		b[len(b)-1] |= byte(rng.IntN(16))
		a, _ = netip.AddrFromSlice(b)
		return netip.PrefixFrom(a, a.BitLen()-rng.IntN(5)).Masked()
	}
	set := func() (egress.Spans, []netip.Prefix) {
		var all []netip.Prefix
		for range rng.IntN(6) {
			all = append(all, prefix())
		}
		return egress.SpansOf(all...), all
	}
	for range 3000 {
		s, in := set()
		u, cut := set()
		minus := s.Minus(u)
		for _, first := range []string{"0.0.0.0", "255.255.255.240", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0"} {
			for a, n := netip.MustParseAddr(first), 0; n < 16; a, n = a.Next(), n+1 {
				holds := func(p netip.Prefix) bool { return p.Contains(a) }
				if got, want := s.Contains(a), slices.ContainsFunc(in, holds); got != want {
					t.Fatalf("%v holds %s: %v", in, a, got)
				}
				if got, want := minus.Contains(a), slices.ContainsFunc(in, holds) && !slices.ContainsFunc(cut, holds); got != want {
					t.Fatalf("%v without %v holds %s: %v", in, cut, a, got)
				}
			}
		}
		p := prefix()
		overlaps, covers := false, true
		for a := p.Addr(); p.Contains(a); a = a.Next() {
			overlaps, covers = overlaps || s.Contains(a), covers && s.Contains(a)
		}
		if s.Overlaps(p) != overlaps || s.Covers(p) != covers {
			t.Fatalf("%v and %s: overlaps %v, covers %v", text(s), p, s.Overlaps(p), s.Covers(p))
		}
	}
}
