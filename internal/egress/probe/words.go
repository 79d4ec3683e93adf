package probe

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Env is all that one attempt is told.
type Env struct {
	// Sign is what must not leave: 16 letters and digits that occur nowhere
	// else.
	Sign string `json:"sign"`

	// Denied and Denied6 are addresses of this attempt alone.
	Denied  netip.Addr `json:"denied"`
	Denied6 netip.Addr `json:"denied6"`

	Allowed netip.Addr `json:"allowed"` // of the host Host, ports 80 and 443
	CIDR    netip.Addr `json:"cidr"`    // allowed by its address, on port OpenPort
	Next    netip.Addr `json:"next"`    // the address after it, which is not
	Private netip.Addr `json:"private"` // nobody's, and protected
	World   netip.Addr `json:"world"`   // of the canary itself
	Names   netip.Addr `json:"names"`   // the name server of the world
	Near    netip.Addr `json:"near"`    // a container on another network of the engine
	Engine  netip.Addr `json:"engine"`  // the engine's host, as that network has it

	HostPort uint16 `json:"host_port"` // of the canary on the engine's host, TCP and UDP

	// Server is the resolver that the sandbox has; the zero value means that
	// it is the router.
	Server netip.Addr `json:"server"`

	// Proxy is the proxy that the sandbox has, as "127.0.0.1:3128"; "" means
	// that connections are direct.
	Proxy string `json:"proxy"`
}

// Names of the world, and its ports.
const (
	Zone     = "prove.example"
	Host     = "allowed." + Zone // allowed, with 80 and 443
	Wild     = "wild." + Zone    // its subdomains are allowed
	Evil     = "evil." + Zone    // not allowed, with its subdomains
	OpenPort = 7000              // of Env.CIDR
)

// evil is a name that is not allowed, leads to the attempt's own address and
// has its sign.
func (e Env) evil() string {
	b := e.Denied.As4()
	return fmt.Sprintf("%s.d%d.%s", e.Sign, b[3], Evil)
}

// AtOnce is how many attempts an agent has under way.
const AtOnce = 16

// Order is an attempt that an agent is given.
type Order struct {
	Attempt string `json:"attempt"`
	Env     Env    `json:"env"`
}

// Result is what a probe says happened.
type Result struct {
	Attempt string `json:"attempt"`
	Said    string `json:"said"` // for people
	Failed  bool   `json:"failed"`

	// Unfinished says that the attempt was not made, or was cut short: what did
	// not come is then no sign that anything stopped it.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Event is something that came to a canary.
type Event struct {
	At      int64      `json:"at"` // Unix time, ns
	Proto   string     `json:"proto"`
	From    netip.Addr `json:"from"`
	To      netip.Addr `json:"to"`
	Port    uint16     `json:"port,omitempty"`
	Payload []byte     `json:"payload,omitempty"`
}

// Told is a line of what a canary says: that it is ready, an answer to a mark,
// or an event.
type Told struct {
	Ready bool   `json:"ready,omitempty"`
	Port  uint16 `json:"port,omitempty"` // with Ready: the one of World.Free
	Mark  string `json:"mark,omitempty"`
	Event *Event `json:"event,omitempty"`
	Error string `json:"error,omitempty"`
}

// Specials are addresses that a world has beside its network's.
var Specials = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("10.211.7.3"), netip.MustParseAddr("8.8.8.8"),
}

// Lookup is the zone of the world: which addresses a name has.
func (e Env) Lookup(name string) []netip.Addr {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == Host {
		return []netip.Addr{e.Allowed}
	}
	if sub, ok := strings.CutSuffix(name, "."+Wild); ok {
		_, kind, found := strings.Cut(sub, ".")
		if !found {
			kind = sub
		}
		switch kind {
		case "meta":
			return []netip.Addr{Specials[0]}
		case "private":
			return []netip.Addr{e.Private}
		case "loop":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		case "engine":
			return []netip.Addr{e.Engine}
		case "near":
			return []netip.Addr{e.Near}
		case "mixed":
			return []netip.Addr{e.Allowed, e.Private}
		case "mapped":
			return []netip.Addr{netip.AddrFrom16(Specials[0].As16())}
		}
		return []netip.Addr{e.Allowed}
	}
	if sub, ok := strings.CutSuffix(name, "."+Evil); ok {
		label := sub[strings.LastIndexByte(sub, '.')+1:]
		if n, err := strconv.ParseUint(strings.TrimPrefix(label, "d"), 10, 8); err == nil && strings.HasPrefix(label, "d") {
			b := e.World.As4()
			b[3] = byte(n)
			return []netip.Addr{netip.AddrFrom4(b)}
		}
	}
	return nil
}

// Shouting is Host as no resolver should pass it on: what is in upper case says
// something of its own.
const Shouting = "ALLOWED." + Zone

// World is what a canary is told.
type World struct {
	Env   Env            `json:"env"`
	Addrs []netip.Prefix `json:"addrs"` // it takes beside its own
	TCP   []uint16       `json:"tcp"`   // ports it answers on
	UDP   []uint16       `json:"udp"`   //
	Free  bool           `json:"free"`  // answer on one port more, TCP and UDP, that nobody has
	Sniff bool           `json:"sniff"` // write down each packet, and not only connections
	Iface string         `json:"iface"` // takes Addrs
}
