package driver

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Network is what a sandbox may reach. Its zero value reaches nothing: nil,
// empty and absent Egress all mean deny, name resolution included.
type Network struct {
	Egress []Rule
	Expose []uint16 // ports reachable from outside, by authenticated callers
	Mode   Mode
	Learn  bool // record what was attempted, while denying it
}

// Mode is how an allowlist is enforced. It means nothing without one.
type Mode uint8

const (
	// Transparent needs no co-operation of the program.
	Transparent Mode = iota
	// Proxy lets only proxy-aware programs out.
	Proxy
)

func (m Mode) String() string {
	switch m {
	case Transparent:
		return "transparent"
	case Proxy:
		return "proxy"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode reads what String writes; "" is transparent.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "", "transparent":
		return Transparent, nil
	case "proxy":
		return Proxy, nil
	}
	return 0, Invalid("network.mode", fmt.Sprintf("%q is no mode", s), `use "transparent" or "proxy"`)
}

func (m Mode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *Mode) UnmarshalText(b []byte) error { return unmarshal(b, m, ParseMode) }

// Rule allows TCP to a host or to a prefix; exactly one of the two is set.
type Rule struct {
	Host   string       // "example.com" is exact, "*.example.com" its subdomains only
	Prefix netip.Prefix // zero when Host is set
	Ports  []uint16     // none = 80 and 443
	Why    string       // for the reviewer
}

// Target is the rule's host or prefix as text.
func (r Rule) Target() string {
	if r.Host != "" {
		return r.Host
	}
	return r.Prefix.String()
}

var defaultPorts = []uint16{80, 443}

// MaxRules is how many rules a list may have, as they are written: to judge
// them takes up to 13 KiB and 0.2 ms for each, of whoever asks.
const MaxRules = 50_000

// CheckCount refuses a list of more than MaxRules rules (code invalid), naming
// its field and their number. Canonical does so itself; readers of lists that
// others write ask it before they do anything for every rule.
func CheckCount(field string, rules int) error {
	if rules <= MaxRules {
		return nil
	}
	return Invalid(field, fmt.Sprintf("%d rules are too many: a list has at most %d", rules, MaxRules),
		"put wider rules in the place of many, as *.example.com or 203.0.113.0/24; or let several sandboxes do the work, each with the rules of its own part")
}

// Canonical is the one normaliser of rules: whatever compares rules or
// requests compares what it returns. Hosts are lower case without the final
// dot, prefixes are masked and IPv4-mapped ones unmapped, ports are explicit,
// rules for one target are merged, and the result is sorted. Names are ASCII:
// other scripts must come as A-labels ("xn--…"). All problems are joined, each
// with its Field, as "network.egress[2].host"; of a list beyond MaxRules that
// is all that is said. Codes: invalid.
func Canonical(rules []Rule) ([]Rule, error) {
	if err := CheckCount("network.egress", len(rules)); err != nil {
		return nil, err
	}
	var errs []error
	merged := make(map[string]*Rule, len(rules))
	whys := make(map[string][]string)
	for i, r := range rules {
		c, err := canonicalRule(fmt.Sprintf("network.egress[%d]", i), r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		target := c.Target()
		if c.Why != "" {
			whys[target] = append(whys[target], c.Why)
		}
		m, ok := merged[target]
		if !ok {
			merged[target] = &c
			continue
		}
		m.Ports = append(m.Ports, c.Ports...)
	}
	if len(errs) > 0 {
		return nil, Join(errs...)
	}
	out := make([]Rule, 0, len(merged))
	for target, r := range merged {
		r.Ports, r.Why = sortedPorts(r.Ports), joinWhys(whys[target])
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// joinWhys gives one text that does not depend on the order of the rules.
func joinWhys(whys []string) string {
	slices.Sort(whys)
	if whys = slices.Compact(whys); len(whys) == 1 {
		return whys[0]
	}
	parts := strings.Split(strings.Join(whys, "; "), "; ")
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}

func canonicalRule(field string, r Rule) (Rule, error) {
	if (r.Host != "") == r.Prefix.IsValid() {
		return r, Invalid(field, "a rule has exactly one of host and CIDR", `give either a host such as "api.example.com" or a CIDR such as "203.0.113.0/24"`)
	}
	if slices.Contains(r.Ports, 0) {
		return r, Invalid(field+".ports", "0 is not a port", "list ports between 1 and 65535, or leave ports out for 80 and 443")
	}
	out := Rule{Ports: sortedPorts(r.Ports), Why: r.Why}
	if len(out.Ports) == 0 {
		out.Ports = slices.Clone(defaultPorts)
	}
	var err error
	if r.Host != "" {
		out.Host, err = canonicalHost(field+".host", r.Host, true)
	} else {
		out.Prefix, err = canonicalPrefix(field+".cidr", r.Prefix)
	}
	return out, err
}

func sortedPorts(p []uint16) []uint16 {
	p = slices.Clone(p)
	slices.Sort(p)
	return slices.Compact(p)
}

// CanonicalHost normalises the host of a request, by the same code as rules;
// a wildcard is refused.
func CanonicalHost(host string) (string, error) { return canonicalHost("host", host, false) }

func canonicalPrefix(field string, p netip.Prefix) (netip.Prefix, error) {
	a := p.Addr()
	if a.Zone() != "" {
		return p, Invalid(field, fmt.Sprintf("%s has a zone", p), "remove what follows the %")
	}
	if a.Is4In6() {
		if p.Bits() < 96 {
			return p, Invalid(field, fmt.Sprintf("%s reaches beyond the IPv4-mapped addresses", p), "write the IPv4 and the IPv6 range as two rules")
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// asItIs reports whether a host is canonical already, as that of nearly every
// request is, in one pass.
func asItIs(host string) bool {
	begin, last := 0, host // of a label
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			if c := host[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
			continue
		}
		last = host[begin:i]
		if last == "" || len(last) > 63 || last[0] == '-' || last[len(last)-1] == '-' {
			return false
		}
		begin = i + 1
	}
	return len(host) <= 253 && len(last) < len(host) && (last[0] < '0' || last[0] > '9')
}

func canonicalHost(field, host string, wildcard bool) (string, error) {
	if asItIs(host) {
		return host, nil
	}
	bad := func(problem, fix string) (string, error) {
		return "", Invalid(field, fmt.Sprintf("%q %s", host, problem), fix)
	}
	if blank(host) {
		if !blank(strings.TrimSpace(host)) {
			return bad("is surrounded by white space", "remove it")
		}
		return bad("contains white space or a control character", `write one host name alone, as "api.example.com"`)
	}
	for i := range len(host) {
		if host[i] >= 0x80 {
			return bad("is not ASCII", `use the A-label form, as "xn--bcher-kva.example" for "bücher.example"`)
		}
	}
	if p, err := netip.ParsePrefix(host); err == nil {
		return bad("is a CIDR", fmt.Sprintf("give it as a CIDR, not as a host: %q", p))
	}
	if strings.Contains(host, "://") || strings.ContainsAny(host, "/?#@") {
		return bad("is not a host name", "give the host alone, without scheme, user or path")
	}
	h := strings.TrimSuffix(strings.ToLower(host), ".")
	name := h
	if rest, ok := strings.CutPrefix(h, "*."); ok && wildcard {
		name = rest
	}
	switch {
	case strings.Contains(name, "*"):
		return bad("has a wildcard where none is allowed", `"*.example.com" stands for the subdomains of example.com; there is no wildcard for everything`)
	case strings.HasPrefix(name, "."):
		return bad("begins with a dot", fmt.Sprintf("use %q for subdomains, %q for the domain itself", "*"+name, name[1:]))
	case strings.Contains(name, ":"):
		return bad(colon(h))
	case len(name) > 253:
		return bad("is longer than 253 characters", "host names are at most 253 characters")
	}
	for l := range strings.SplitSeq(name, ".") {
		if problem := badLabel(l); problem != "" {
			return bad(problem, "labels are 1 to 63 of a-z, 0-9 and '-', not beginning or ending with '-'")
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if first := name[dot+1]; first >= '0' && first <= '9' {
		return bad("looks like an address", `give an address as a CIDR, as "203.0.113.7/32"`)
	}
	if dot < 0 && name == h {
		return bad("is a single label, which would depend on a search domain", `use the full name, as "db.example.com"`)
	}
	return h, nil
}

// blank reports whether s has white space or a control character in ASCII.
func blank(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// colon tells what a colon does in the place of a host, and the fix.
func colon(host string) (problem, fix string) {
	if a, err := netip.ParseAddr(host); err == nil {
		return "is an address", fmt.Sprintf("give it as a CIDR, as %q", netip.PrefixFrom(a.WithZone(""), a.BitLen()))
	}
	name, ports, _ := strings.Cut(host, ":")
	if _, err := parsePorts(ports); err != nil {
		return "has a colon", `write the host alone, as "example.com"`
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return "is an address with a port", fmt.Sprintf("give the address as the CIDR %q, and %s in ports", netip.PrefixFrom(a, a.BitLen()), ports)
	}
	return "has a port", fmt.Sprintf("write the host alone, as %q, and %s in ports", name, ports)
}

func badLabel(l string) string {
	switch {
	case l == "":
		return "has an empty label"
	case len(l) > 63:
		return "has a label longer than 63 characters"
	case l[0] == '-' || l[len(l)-1] == '-':
		return "has a label that begins or ends with '-'"
	}
	for i := range len(l) {
		if c := l[i]; !alnum(c) && c != '-' {
			return fmt.Sprintf("contains %q", c)
		}
	}
	return ""
}
