package boot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Line is one line of what a gateway writes to its stdout, as JSON. One of its
// fields is set, and Asked beside Denied.
type Line struct {
	Ready   *Ready   `json:"ready,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Denied  *Denied  `json:"denied,omitempty"`
	Host    *Host    `json:"host,omitempty"`
	// Asked is how many Questions the gateway has read by now: it tells what was
	// denied when it is asked, and else each second in which it has become more.
	Asked int `json:"asked,omitempty"`
}

// Question is what an owner writes to its gateway's stdin to be told what was
// Denied. Who does not own it sends SIGUSR1 instead.
const Question = '?'

const (
	// MaxLine bounds a Line, in bytes.
	MaxLine = 64 << 10
	// MaxDenied bounds one that tells what was Denied: engines cut what they log
	// at 16 KiB.
	MaxDenied = 15 << 10
)

// Ready says that the policy is in place, before the first packet of the
// sandbox is let through: what was found when it was looked at again.
type Ready struct {
	Inside  string   `json:"inside"`  // interface to the sandbox
	Uplink  string   `json:"uplink"`  // interface to everything else
	Ruleset string   `json:"ruleset"` // DigestOf the packet filter that the kernel has
	UID     uint32   `json:"uid"`     // who it runs as now
	Caps    uint64   `json:"caps"`    // its effective and permitted capabilities now
	IPv6    []string `json:"ipv6"`    // interfaces that still have it
	Address string   `json:"address"` // what it has taken in the sandbox's network
}

// Refused says why a gateway did not come up. It has let nothing through.
type Refused struct {
	Code  driver.Code `json:"code"`
	Field string      `json:"field,omitempty"`
	Text  string      `json:"text"`
	Hint  string      `json:"hint,omitempty"`
}

// Err is the refusal as an error.
func (r Refused) Err() error {
	code := driver.CodeInternal
	for _, c := range []driver.Code{driver.CodeUnsupported, driver.CodeInvalid} {
		if r.Code == c {
			code = c
		}
	}
	return &driver.Error{Code: code, Field: r.Field, Hint: r.Hint, Err: fmt.Errorf("the gateway does not come up: %s", r.Text)}
}

// Denied is what was refused so far: the foremost kinds of it, and how many more
// there were.
type Denied struct {
	Told  []egress.Denial `json:"told"`
	Other int             `json:"other"`
}

// MaxTold is how many kinds of refusals a line tells.
const MaxTold = 128

// Host is what an engine's host has on its network: what a gateway on it must
// protect, and whom it may ask for names.
type Host struct {
	Addrs   []netip.Addr   `json:"addrs"`   // of its interfaces, IPv4
	Routes  []netip.Prefix `json:"routes"`  // IPv4 networks that it knows a way to, the default route left out
	Servers []netip.Addr   `json:"servers"` // name servers
	IPv6    bool           `json:"ipv6"`    // its kernel knows IPv6, so that it has to be turned off
	Lax     bool           `json:"lax"`     // it takes in what comes from whoever on a new bridge (rp_filter is 0)
}

// HostArgs are the arguments of a program that says its Host, in the host's
// own network namespace, and ends.
func HostArgs() []string { return []string{"host"} }

// ParseLine reads one line; what it does not know it leaves out.
func ParseLine(line []byte) (Line, error) {
	var l Line
	if len(line) > MaxLine {
		return l, fmt.Errorf("a line of more than %d bytes", MaxLine)
	}
	err := json.Unmarshal(line, &l)
	return l, err
}

// DigestOf is the digest of a packet filter.
func DigestOf(r gateway.Ruleset) string {
	sum := sha256.Sum256([]byte(r.String()))
	return "sha256:" + hex.EncodeToString(sum[:])
}
