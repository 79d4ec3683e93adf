package gateway

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Ruleset is one table of the packet filter, as data: for IPv4 and IPv6, in the
// words of nftables.
type Ruleset struct {
	Table  string
	Sets   []Set
	Chains []Chain
}

// Set is a named set of addresses, of runs that do not touch.
type Set struct {
	Name  string
	Spans egress.Spans
}

// Chain is a base chain: what the hook gives it, and no rule decides on, has
// its policy for a verdict.
type Chain struct {
	Name     string
	Type     string // "filter" or "nat"
	Hook     string // "prerouting", "input", "forward", "output" or "postrouting"
	Priority int
	Policy   Verdict
	Rules    []PacketRule
}

// PacketRule is a verdict on packets that have all that is set in it.
type PacketRule struct {
	Why         string
	In, Out     string       // interface
	IPv6        bool         // any IPv6 packet; nothing else may be set but the verdict
	From        netip.Prefix // source
	NotFrom     netip.Prefix // anything but this source
	To          netip.Prefix // destination
	ToSet       string       // destination, by the name of a set
	Proto       string       // "tcp" or "udp"
	Ports       []uint16     // destination ports
	Established bool         // belongs or is related to a connection that was let through
	New         bool         // begins a connection
	Redirected  bool         // was turned aside by a redirect
	Few         bool         // of those that have all the rest: within BeginRate, BeginBurst and BeginAtATime
	UID         *uint32      // of the process that sent it
	Verdict     Verdict
	ToPort      uint16 // of a redirect
}

// Verdict is what becomes of a packet.
type Verdict string

const (
	Accept     Verdict = "accept"
	Drop       Verdict = "drop"
	Redirect   Verdict = "redirect"
	Masquerade Verdict = "masquerade"

	// Note decides nothing: the packet's beginning is told to the netlink group
	// NoteGroup, up to NoteRate times a second, and the next rule decides.
	Note Verdict = "note"
)

const (
	NoteGroup = 1
	NoteRate  = 50
	NoteBurst = 100
	// NoteLength is how much of a packet is told: the headers, and no payload.
	NoteLength = 64
)

// What a gateway begins: that many connections at once, then so many a second,
// and no more than so many that have not ended. Each takes an entry in the
// connection tables of the gateway and of the engine's host, two minutes after
// it has ended still, or has not been answered: so that there are at most
// BeginBurst + 120 × BeginRate of these, of the 65,536 or more that a host has
// room for. What a Router holds by itself is less.
const (
	BeginRate    = 100
	BeginBurst   = 12_000
	BeginAtATime = 12_000
)

// String is the table as nft reads it, made anew when it exists.
func (r Ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s\ndelete table inet %s\ntable inet %s {\n", r.Table, r.Table, r.Table)
	for _, s := range r.Sets {
		fmt.Fprintf(&b, "\tset %s {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\telements = { ", s.Name)
		for i, span := range s.Spans {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(span.First.String())
			if span.Last != span.First {
				b.WriteString("-" + span.Last.String())
			}
		}
		b.WriteString(" }\n\t}\n")
	}
	for _, c := range r.Chains {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %d; policy %s;\n", c.Name, c.Type, c.Hook, c.Priority, c.Policy)
		for _, rule := range c.Rules {
			b.WriteString("\t\t" + rule.String() + "\n")
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// String is the rule as nft reads it.
func (r PacketRule) String() string {
	var w []string
	add := func(ok bool, words ...string) {
		if ok {
			w = append(w, words...)
		}
	}
	add(r.In != "", "iifname", strconv.Quote(r.In))
	add(r.Out != "", "oifname", strconv.Quote(r.Out))
	add(r.UID != nil, "meta skuid", number(r.UID))
	add(r.IPv6, "meta nfproto ipv6")
	add(r.From.IsValid(), "ip saddr", r.From.String())
	add(r.NotFrom.IsValid(), "ip saddr !=", r.NotFrom.String())
	add(r.To.IsValid(), "ip daddr", r.To.String())
	add(r.ToSet != "", "ip daddr @"+r.ToSet)
	add(r.Proto != "", "meta l4proto", r.Proto)
	if len(r.Ports) > 0 {
		ports := make([]string, len(r.Ports))
		for i, p := range r.Ports {
			ports[i] = strconv.Itoa(int(p))
		}
		add(true, r.Proto+" dport { "+strings.Join(ports, ", ")+" }")
	}
	add(r.Established, "ct state established,related")
	add(r.New, "ct state new")
	add(r.Redirected, "ct status dnat")
	add(r.Few, fmt.Sprintf("limit rate %d/second burst %d packets ct count %d", BeginRate, BeginBurst, BeginAtATime))
	add(r.Verdict == Drop, "counter")
	add(r.Verdict != Note, string(r.Verdict))
	add(r.Verdict == Note, fmt.Sprintf("limit rate %d/second burst %d packets log group %d snaplen %d", NoteRate, NoteBurst, NoteGroup, NoteLength))
	add(r.Verdict == Redirect, fmt.Sprintf("to :%d", r.ToPort))
	add(r.Why != "", "comment", strconv.Quote(r.Why))
	return strings.Join(w, " ")
}

func number(n *uint32) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n), 10)
}
