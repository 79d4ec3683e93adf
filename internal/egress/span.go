package egress

import (
	"net/netip"
	"slices"
)

// Span is a run of addresses of one family, both ends included.
type Span struct{ First, Last netip.Addr }

// Spans are runs in order, of which no two overlap or touch.
type Spans []Span

// SpansOf gives the addresses of prefixes in the form of driver.Canonical.
// The order and the overlaps of the prefixes do not matter.
func SpansOf(prefixes ...netip.Prefix) Spans {
	all := make(Spans, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, Span{p.Masked().Addr(), last(p)})
	}
	return all.merged()
}

// last is the last address of p, 255.255.255.255 included.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		switch keep := p.Bits() - i*8; {
		case keep <= 0:
			b[i] = 0xff
		case keep < 8:
			b[i] |= 0xff >> keep
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (s Spans) merged() Spans {
	slices.SortFunc(s, func(a, b Span) int { return a.First.Compare(b.First) })
	var out Spans
	for _, r := range s {
		if n := len(out); n > 0 && out[n-1].Last.BitLen() == r.First.BitLen() {
			// The address after the last one there is does not exist.
			if next := out[n-1].Last.Next(); !next.IsValid() || r.First.Compare(next) <= 0 {
				if r.Last.Compare(out[n-1].Last) > 0 {
					out[n-1].Last = r.Last
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// Contains reports whether a is in one of the runs.
func (s Spans) Contains(a netip.Addr) bool {
	i, exact := slices.BinarySearchFunc(s, a, func(r Span, a netip.Addr) int { return r.First.Compare(a) })
	if exact {
		return true
	}
	return i > 0 && s[i-1].Last.BitLen() == a.BitLen() && a.Compare(s[i-1].Last) <= 0
}

// Covers reports whether every address of p is in s.
func (s Spans) Covers(p netip.Prefix) bool {
	return len(SpansOf(p).Minus(s)) == 0
}

// Overlaps reports whether some address of p is in s.
func (s Spans) Overlaps(p netip.Prefix) bool {
	all := SpansOf(p)
	return !slices.Equal(all.Minus(s), all)
}

// Union gives the addresses of all.
func Union(all ...Spans) Spans { return slices.Concat(all...).merged() }

// Minus gives the addresses of s that are not in t.
func (s Spans) Minus(t Spans) Spans {
	var out Spans
	for _, r := range s {
		gone := false
		for _, cut := range t {
			if cut.First.BitLen() != r.First.BitLen() || cut.Last.Compare(r.First) < 0 {
				continue
			}
			if cut.First.Compare(r.Last) > 0 {
				break
			}
			if cut.First.Compare(r.First) > 0 {
				out = append(out, Span{r.First, cut.First.Prev()})
			}
			if cut.Last.Compare(r.Last) >= 0 {
				gone = true
				break
			}
			r.First = cut.Last.Next()
		}
		if !gone {
			out = append(out, r)
		}
	}
	return out
}
