package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const requestFix = `write a host or an address and a port, as "example.com:443" or "[2001:db8::1]:443"`

// ParseRequest reads a request as one word: a host or an address, and a port:
// "example.com:443", "203.0.113.9:8022", "[2001:db8::1]:443". Names are ASCII, as
// for driver.Canonical. Code: invalid.
func ParseRequest(field, word string) (Request, error) {
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
		return Request{}, driver.Invalid(field, fmt.Sprintf("%+q has no port", word), requestFix)
	}
	port, err := strconv.ParseUint(word[at+1:], 10, 16)
	if strings.Contains(word[:at], ":") {
		return Request{}, colons(field, word, at, err == nil && port > 0)
	}
	if err != nil || port == 0 {
		return Request{}, driver.Invalid(field, fmt.Sprintf("%+q has the port %+q", word, word[at+1:]), "ask for one port, a number between 1 and 65535")
	}
	host, err := driver.CanonicalHost(word[:at])
	if err != nil {
		p := driver.Problems(err)[0]
		return Request{}, driver.Invalid(field, p.Err.Error(), p.Hint)
	}
	return Request{Host: host, Port: uint16(port)}, nil
}

// colons refuses a word with more than one colon, of which the last is at a
// place and may be in front of a port: an IPv6 address without brackets, or
// nothing that could be read.
func colons(field, word string, at int, port bool) error {
	if _, err := netip.ParseAddr(word[:at]); err == nil && port {
		return driver.Invalid(field, fmt.Sprintf("%+q is an IPv6 address without brackets", word), fmt.Sprintf("write %+q", "["+word[:at]+"]"+word[at:]))
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(word, "["), "]")
	if _, err := netip.ParseAddr(bare); err == nil {
		return driver.Invalid(field, fmt.Sprintf("%+q has no port", word), fmt.Sprintf("write %+q", "["+bare+"]:443"))
	}
	return driver.Invalid(field, fmt.Sprintf("%+q has more than one colon", word), requestFix)
}
