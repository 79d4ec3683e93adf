package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Kind is what a finding is about. Kinds are data, never renamed.
type Kind string

const (
	KindMalformed     Kind = "malformed"     // driver.Canonical refuses the rule
	KindUnenforceable Kind = "unenforceable" // Mechanisms refuses it
	KindMetadata      Kind = "metadata"      // it opens where clouds hand out credentials
	KindProtected     Kind = "protected"     // it opens another protected range
	KindHoles         Kind = "holes"         // protected ranges inside stay closed
	KindWide          Kind = "wide"          // it opens what belongs to many
	KindDuplicate     Kind = "duplicate"     // earlier rules for the same target say it all
	KindShadowed      Kind = "shadowed"      // a wider rule says it all
	KindNever         Kind = "never"         // nothing can match it
	KindResolver      Kind = "resolver"      // it reaches name servers past our own
	KindTooMany       Kind = "too-many"      // the list has more than driver.MaxRules
	KindMasked        Kind = "masked"        // a range is written with an address inside it
)

// Finding is something about one rule that its reviewer should know.
type Finding struct {
	Rule  int // index in what was linted; -1 for the list as a whole
	Kind  Kind
	Deny  bool   // the list cannot or should not be used as it is
	Field string // "host", "cidr", "ports", or "" for the whole rule
	Text  string
	Fix   string

	// Mute is the port on which no host is named, of a rule for a host that is
	// unenforceable for it; else 0.
	Mute uint16
}

// Widths from which on a prefix is not wide, those of the policy's rule on
// wide prefixes.
const narrow4, narrow6 = 20, 48

// Lint judges rules as they were written, for a mode. Findings come in the
// order of the rules; of a malformed rule only that is told, and so it is of a
// list that is too long.
func Lint(rules []driver.Rule, mode driver.Mode) []Finding {
	for _, p := range driver.Problems(driver.CheckCount("network.egress", len(rules))) {
		return []Finding{{Rule: -1, Kind: KindTooMany, Deny: true, Text: p.Err.Error(), Fix: p.Hint}}
	}
	l := linter{mode: mode, ports: map[string]map[uint16]bool{}}
	var good []driver.Rule
	var at []int
	for i, r := range rules {
		c, err := driver.Canonical([]driver.Rule{r})
		if err != nil {
			for _, p := range driver.Problems(err) {
				l.add(Finding{Rule: i, Kind: KindMalformed, Deny: true, Field: fieldOf(p), Text: p.Err.Error(), Fix: p.Hint})
			}
			continue
		}
		good, at = append(good, c[0]), append(at, i)
	}
	l.all, _ = Compile(good, Options{}) // all of them are canonical
	for n, c := range good {
		l.masked(at[n], rules[at[n]].Prefix, c.Prefix)
		l.rule(at[n], c)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return a.Rule - b.Rule })
	return l.found
}

// fieldOf is the last part of a field as "network.egress[0].host".
func fieldOf(e *driver.Error) string {
	_, name, _ := strings.Cut(e.Field, "].")
	return name
}

type linter struct {
	mode  driver.Mode
	all   *Policy
	ports map[string]map[uint16]bool // of the rules so far, by target
	found []Finding
}

func (l *linter) add(f Finding) { l.found = append(l.found, f) }

func (l *linter) warn(rule int, kind Kind, field, text, fix string) {
	l.add(Finding{Rule: rule, Kind: kind, Field: field, Text: text, Fix: fix})
}

func (l *linter) rule(i int, c driver.Rule) {
	if _, err := Mechanisms(driver.Network{Egress: []driver.Rule{c}, Mode: l.mode}); err != nil {
		for _, p := range driver.Problems(err) {
			f := Finding{Rule: i, Kind: KindUnenforceable, Deny: true, Field: fieldOf(p), Text: p.Err.Error(), Fix: p.Hint}
			if mute, ok := errors.AsType[*MuteError](p); ok {
				f.Mute = mute.Port
			}
			l.add(f)
		}
	}
	if c.Host != "" {
		l.host(i, c)
	} else {
		l.prefix(i, c)
	}
	for _, port := range []uint16{53, 853} {
		if has(c.Ports, port) && (c.Host == "" || speechless[port] == "") {
			l.warn(i, KindResolver, "ports", fmt.Sprintf("port %d leads to a name server past the gateway's own, through which data leaves in what is asked for", port),
				without(c, port, func(p uint16) bool { return p == 53 || p == 853 })+", and name the hosts that the program needs")
		}
	}
	l.said(i, c)
}

// unresolved are the special-use names that no resolver of the Internet
// answers (RFC 6761, RFC 6762, RFC 7686).
var unresolved = []string{"localhost", "invalid", "local", "onion"}

func (l *linter) host(i int, c driver.Rule) {
	base, wild := strings.CutPrefix(c.Host, "*.")
	if wild && !strings.Contains(base, ".") {
		l.warn(i, KindWide, "host", fmt.Sprintf("anybody can have a name that %s matches", c.Host), "name the hosts, or use a wildcard below a domain of your own")
	}
	if top := base[strings.LastIndexByte(base, '.')+1:]; slices.Contains(unresolved, top) {
		l.warn(i, KindNever, "host", fmt.Sprintf("names below .%s are resolved by nobody", top), "remove the rule, or use a name that a public zone has")
	}
}

// dead are the classes that no TCP connection leads to.
var dead = []driver.Class{driver.ClassMulticast, driver.ClassUnspecified, driver.ClassReserved}

func (l *linter) prefix(i int, c driver.Rule) {
	p := c.Prefix
	if by, ok := driver.ProtectedBy(p.Addr()); ok && names(p, by.Prefix) {
		switch {
		case slices.Contains(dead, by.Class):
			l.warn(i, KindNever, "cidr", fmt.Sprintf("%s is in %s, where no connection leads", p, by.Prefix), "remove the rule")
		case by.Class == driver.ClassMetadata:
			l.add(Finding{Rule: i, Kind: KindMetadata, Deny: true, Field: "cidr", Text: fmt.Sprintf("%s hands out the host's credentials", p), Fix: "remove the rule, and give the sandbox a scoped secret"})
		default:
			l.warn(i, KindProtected, "cidr", fmt.Sprintf("%s opens %s addresses", p, by.Class), "publish the service at a public address, or name no more than it needs")
		}
	}
	var holes []string
	for _, r := range driver.Touches(p) {
		if !names(p, r.Prefix) && p.Overlaps(r.Prefix) {
			holes = append(holes, r.Prefix.String())
		}
	}
	if len(holes) > 0 {
		more := ""
		if n := len(holes) - 3; n > 0 {
			holes, more = holes[:3], fmt.Sprintf(" and %d more", n)
		}
		l.warn(i, KindHoles, "cidr", fmt.Sprintf("inside %s, %s%s stay closed: a rule opens a protected range only by its name", p, strings.Join(holes, ", "), more),
			"narrow it to what the program needs; a protected range takes a rule of its own, which the policy has to allow (SBX-NET-004, SBX-NET-005)")
	}
	if least := narrowest(p); p.Bits() < least {
		l.warn(i, KindWide, "cidr", fmt.Sprintf("%s is wider than /%d", p, least), fmt.Sprintf("use /%d or narrower, or name hosts", least))
	}
}

// masked tells of a range as 203.0.113.77/24, which may be meant for the
// address alone.
func (l *linter) masked(i int, written, c netip.Prefix) {
	a := written.Addr().Unmap()
	if !c.IsValid() || a == c.Addr() {
		return
	}
	fix := fmt.Sprintf("write %s", c)
	if driver.Classify(a) == driver.ClassPublic {
		fix += fmt.Sprintf(", or %s for the address alone", netip.PrefixFrom(a, a.BitLen()))
	}
	l.warn(i, KindMasked, "cidr", fmt.Sprintf("%s is written with an address inside it, and means all of %s", written, c), fix)
}

func narrowest(p netip.Prefix) int {
	if p.Addr().Is4() {
		return narrow4
	}
	return narrow6
}

// said tells whether other rules say all that a rule says.
func (l *linter) said(i int, c driver.Rule) {
	target := c.Target()
	before, ok := l.ports[target]
	if !ok {
		before = map[uint16]bool{}
		l.ports[target] = before
	}
	if ok && !slices.ContainsFunc(c.Ports, func(port uint16) bool { return !before[port] }) {
		l.warn(i, KindDuplicate, "", fmt.Sprintf("an earlier rule has the same target, %s, and all its ports", target), "remove one of them")
	}
	for _, port := range c.Ports {
		before[port] = true
	}
	if by := l.all.shadow(c); by >= 0 {
		l.warn(i, KindShadowed, "", fmt.Sprintf("%s allows all of it", l.all.rules[by]), "remove this one, or narrow the other")
	}
}

// shadow finds a rule with a wider target that allows all that c does, or -1.
func (p *Policy) shadow(c driver.Rule) int {
	if c.Host != "" {
		for _, rest, ok := strings.Cut(strings.TrimPrefix(c.Host, "*."), "."); ok; _, rest, ok = strings.Cut(rest, ".") {
			if i, found := p.below[rest]; found && p.covers(i, c.Ports) {
				return i
			}
		}
		return -1
	}
	by, protected := p.protectedBy(c.Prefix.Addr())
	for n := p.innermost(c.Prefix.Addr()); n >= 0; n = p.nodes[n].parent {
		at := p.nodes[n]
		if at.prefix.Bits() >= c.Prefix.Bits() || !at.prefix.Contains(c.Prefix.Addr()) || !p.covers(at.rule, c.Ports) {
			continue
		}
		if protected && names(c.Prefix, by.Prefix) && !names(at.prefix, by.Prefix) {
			return -1 // the wider one reaches across what this one names, and so do those around it
		}
		return at.rule
	}
	return -1
}

// covers reports whether a rule has all of the ports.
func (p *Policy) covers(rule int, ports []uint16) bool {
	return !slices.ContainsFunc(ports, func(port uint16) bool { return !has(p.rules[rule].Ports, port) })
}
