package gateway

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// authority is where a request goes, as HTTP writes it: a host or an address,
// and a port, 0 when it is left out.
type authority struct {
	host string     // canonical
	addr netip.Addr // unmapped, without zone
	port uint16
}

// parseAuthority reads "example.com", "example.com:443", "203.0.113.7" and
// "[2001:db8::1]:443". Every other spelling of an address is refused, as is
// whatever driver.CanonicalHost refuses.
func parseAuthority(s string) (authority, error) {
	var a authority
	bad := func() (authority, error) {
		return authority{}, refuse(egress.BadHTTP, "an authority is neither a host nor an address")
	}
	var host, port string
	if rest, ok := strings.CutPrefix(s, "["); ok {
		inside, after, closed := strings.Cut(rest, "]")
		addr, err := netip.ParseAddr(inside)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" || after != "" && after[0] != ':' {
			return bad()
		}
		a.addr, port = addr.Unmap(), strings.TrimPrefix(after, ":")
		if after == ":" {
			return bad()
		}
	} else if host, port, ok = strings.Cut(s, ":"); ok && port == "" {
		return bad()
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || port[0] < '1' || port[0] > '9' {
			return authority{}, refuse(egress.BadHTTP, "an authority has no port after its colon")
		}
		a.port = uint16(n)
	}
	if a.addr.IsValid() {
		return a, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		a.addr = addr
		return a, nil
	}
	name, err := driver.CanonicalHost(host)
	if err != nil {
		return bad()
	}
	a.host = strings.Clone(name) // and not the line that it stood in
	return a, nil
}

// same reports whether both name one target, where port is what a missing port
// means.
func (a authority) same(b authority, port uint16) bool {
	if a.port == 0 {
		a.port = port
	}
	if b.port == 0 {
		b.port = port
	}
	return a == b
}
