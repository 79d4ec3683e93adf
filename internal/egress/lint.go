package egress

import (
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
)

// Finding is something about one rule that its reviewer should know.
type Finding struct {
	Rule  int // index in what was linted; -1 for the list as a whole
	Kind  Kind
	Deny  bool   // the list cannot or should not be used as it is
	Field string // "host", "cidr", "ports", or "" for the whole rule
	Text  string
	Fix   string
}

// Widths from which on a prefix is not wide, those of the policy's rule on
// wide prefixes.
const narrow4, narrow6 = 20, 48

// Lint judges rules as they were written, for a mode. Findings come in the
// order of the rules; of a malformed rule only that is told, and so it is of a
// list that is too long.
func Lint(rules []driver.Rule, mode driver.Mode) []Finding {
	for _, p := range driver.Problems(driver.CheckCount("network.egress", len(rules))) {
		return []Finding{{-1, KindTooMany, true, "", p.Err.Error(), p.Hint}}
	}
	l := linter{mode: mode, ports: map[string]map[uint16]bool{}}
	var good []driver.Rule
	var at []int
	for i, r := range rules {
		c, err := driver.Canonical([]driver.Rule{r})
		if err != nil {
			for _, p := range driver.Problems(err) {
				l.add(Finding{i, KindMalformed, true, fieldOf(p), p.Err.Error(), p.Hint})
			}
			continue
		}
		good, at = append(good, c[0]), append(at, i)
	}
	l.all, _ = Compile(good, Options{}) // all of them are canonical
	for n, c := range good {
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

func (l *linter) rule(i int, c driver.Rule) {
	if _, err := Mechanisms(driver.Network{Egress: []driver.Rule{c}, Mode: l.mode}); err != nil {
		for _, p := range driver.Problems(err) {
			l.add(Finding{i, KindUnenforceable, true, fieldOf(p), p.Err.Error(), p.Hint})
		}
	}
	if c.Host != "" {
		l.host(i, c)
	} else {
		l.prefix(i, c)
	}
	for _, port := range []uint16{53, 853} {
		if has(c.Ports, port) && (c.Host == "" || speechless[port] == "") {
			l.add(Finding{i, KindResolver, false, "ports", fmt.Sprintf("port %d leads to a name server past the gateway's own, through which data leaves in what is asked for", port),
				fmt.Sprintf("take port %d out, and name the hosts that the program needs", port)})
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
		l.add(Finding{i, KindWide, false, "host", fmt.Sprintf("anybody can have a name that %s matches", c.Host), "name the hosts, or use a wildcard below a domain of your own"})
	}
	if top := base[strings.LastIndexByte(base, '.')+1:]; slices.Contains(unresolved, top) {
		l.add(Finding{i, KindNever, false, "host", fmt.Sprintf("names below .%s are resolved by nobody", top), "remove the rule, or give the address as a CIDR"})
	}
}

// dead are the classes that no TCP connection leads to.
var dead = []driver.Class{driver.ClassMulticast, driver.ClassUnspecified, driver.ClassReserved}

func (l *linter) prefix(i int, c driver.Rule) {
	p := c.Prefix
	if by, ok := driver.ProtectedBy(p.Addr()); ok && names(p, by.Prefix) {
		switch {
		case slices.Contains(dead, by.Class):
			l.add(Finding{i, KindNever, false, "cidr", fmt.Sprintf("%s is in %s, where no connection leads", p, by.Prefix), "remove the rule"})
		case by.Class == driver.ClassMetadata:
			l.add(Finding{i, KindMetadata, true, "cidr", fmt.Sprintf("%s hands out the host's credentials", p), "remove the rule, and give the sandbox a scoped secret"})
		default:
			l.add(Finding{i, KindProtected, false, "cidr", fmt.Sprintf("%s opens %s addresses", p, by.Class), "publish the service at a public address, or name no more than it needs"})
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
		l.add(Finding{i, KindHoles, false, "cidr", fmt.Sprintf("inside %s, %s%s stay closed: a rule opens a protected range only by its name", p, strings.Join(holes, ", "), more),
			"name the range as a rule of its own if it is meant, or narrow this one"})
	}
	if least := narrowest(p); p.Bits() < least {
		l.add(Finding{i, KindWide, false, "cidr", fmt.Sprintf("%s is wider than /%d", p, least), fmt.Sprintf("use /%d or narrower, or name hosts", least)})
	}
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
		l.add(Finding{i, KindDuplicate, false, "", fmt.Sprintf("an earlier rule has the same target, %s, and all its ports", target), "remove one of them"})
	}
	for _, port := range c.Ports {
		before[port] = true
	}
	if by := l.all.shadow(c); by >= 0 {
		l.add(Finding{i, KindShadowed, false, "", fmt.Sprintf("%s allows all of it", l.all.rules[by]), "remove this one, or narrow the other"})
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
