package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ParseRequest reads a request as one word: a host or an address, and a port:
// "example.com:443", "203.0.113.9:22", "[2001:db8::1]:443". Names are ASCII, as
// for driver.Canonical. Code: invalid.
func ParseRequest(field, word string) (Request, error) {
	const fix = `write a host or an address and a port, as "example.com:443" or "[2001:db8::1]:443"`
	if ap, err := netip.ParseAddrPort(word); err == nil && ap.Port() != 0 {
		return Request{Addr: ap.Addr().Unmap().WithZone(""), Port: ap.Port()}, nil
	}
	if strings.ContainsAny(word, "/?#@") { // a URL, whatever follows its last colon
		_, err := driver.CanonicalHost(word)
		p := driver.Problems(err)[0]
		return Request{}, driver.Invalid(field, p.Err.Error(), p.Hint)
	}
	at := strings.LastIndexByte(word, ':')
	if at < 0 {
		return Request{}, driver.Invalid(field, fmt.Sprintf("%+q has no port", word), fix)
	}
	port, err := strconv.ParseUint(word[at+1:], 10, 16)
	if err != nil || port == 0 {
		return Request{}, driver.Invalid(field, fmt.Sprintf("%+q has the port %+q", word, word[at+1:]), "ports are between 1 and 65535")
	}
	host, err := driver.CanonicalHost(word[:at])
	if err != nil {
		p := driver.Problems(err)[0]
		return Request{}, driver.Invalid(field, p.Err.Error(), p.Hint)
	}
	return Request{Host: host, Port: uint16(port)}, nil
}
