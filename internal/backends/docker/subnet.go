package docker

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// defaultPool is where the networks of sandboxes get their addresses: a range
// that is set aside for tests of equipment (RFC 2544), so that it is nobody's
// local network, and that no rule opens unless it names it.
var defaultPool = netip.MustParsePrefix("198.18.0.0/15")

// subnetBits is the size of each network: eight addresses, of which the
// gateway has two and the sandbox one.
const subnetBits = 29

// pool gives networks out of a range. It remembers none: the engine refuses
// what overlaps, and is asked for the next.
type pool struct {
	within netip.Prefix
	taken  []netip.Prefix // not to be tried
}

// size is how many networks there are in the range.
func (p pool) size() uint32 { return 1 << (subnetBits - p.within.Bits()) }

func (p pool) at(i uint32) netip.Prefix {
	base := p.within.Masked().Addr().As4()
	n := binary.BigEndian.Uint32(base[:]) + i<<(32-subnetBits)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n))), subnetBits)
}

// free gives up to n networks that overlap nothing taken, from anywhere in the
// range, so that two who ask at a time rarely get the same. Codes: exhausted.
func (p pool) free(n int) ([]netip.Prefix, error) {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	start := binary.LittleEndian.Uint32(b[:]) % p.size()
	var out []netip.Prefix
	for i := range p.size() {
		s := p.at((start + i) % p.size())
		if !slices.ContainsFunc(p.taken, s.Overlaps) {
			if out = append(out, s); len(out) == n {
				return out, nil
			}
		}
	}
	return nil, &driver.Error{Code: driver.CodeExhausted, Field: "network", Hint: "sandboxio reap --kill, or a wider address_pool, as address_pool=10.64.0.0/12",
		Err: fmt.Errorf("the address pool %s has no room for %d more networks: %d in all, of which each sandbox with an allowlist takes two", p.within, n, p.size())}
}

// host is the nth address of a network.
func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Addr()
	for range n {
		a = a.Next()
	}
	return a
}
