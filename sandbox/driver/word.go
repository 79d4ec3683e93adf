package driver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// String is the rule as one word, which [ParseRule] reads back.
func (r Rule) String() string {
	target := r.Target()
	if r.Host == "" && r.Prefix.Addr().Is6() {
		target = "[" + target + "]"
	}
	if len(r.Ports) == 0 {
		return target
	}
	ports := make([]string, len(r.Ports))
	for i, p := range r.Ports {
		ports[i] = strconv.Itoa(int(p))
	}
	return target + ":" + strings.Join(ports, ",")
}

const (
	portsFix = "ports are numbers between 1 and 65535, divided by commas"
	ruleFix  = `write one host or CIDR and its ports, without white space, as "example.com:443"`
)

// ParseRule reads a rule written as one word: a host, an address or a CIDR,
// with ports behind a colon if they are not 80 and 443, divided by commas:
// "example.com", "*.example.com:443,8443", "203.0.113.7", "10.0.0.0/8:5432",
// "[2001:db8::/32]:443". What [Rule.String] writes is such a word. The result
// is not canonical yet. Codes: invalid.
func ParseRule(s string) (Rule, error) {
	const field = "rule"
	bad := func(problem, fix string) (Rule, error) {
		return Rule{}, Invalid(field, fmt.Sprintf("%q %s", s, problem), fix)
	}
	if blank(s) {
		return bad(apart(s))
	}
	target, ports, err := splitPorts(field, s)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Ports: ports}
	if a, err := netip.ParseAddr(target); err == nil {
		if a.Zone() != "" {
			return bad("has a zone", "remove what follows the %")
		}
		r.Prefix = netip.PrefixFrom(a, a.BitLen())
		return r, nil
	}
	if word, ok := bare(target); ok {
		return bad("is an IPv6 target with a port and without brackets", fmt.Sprintf("write %q", word))
	}
	switch {
	case strings.Contains(target, "/") && !strings.Contains(target, "://"):
		r.Prefix, err = ParseCIDR(field, target)
		return r, err
	case strings.Count(target, ":") > 1:
		return bad("has more than one colon", `write ports behind one colon, as "example.com:80,443", and IPv6 in brackets, as "[2001:db8::/32]:443"`)
	}
	r.Host, err = canonicalHost(field, target, true)
	return r, err
}

// apart tells what white space does in a rule, and the fix.
func apart(s string) (problem, fix string) {
	if !blank(strings.TrimSpace(s)) {
		return "is surrounded by white space", "remove it"
	}
	problem, fix = "contains white space or a control character", ruleFix
	parts := strings.Fields(s)
	if len(parts) < 2 {
		return problem, fix
	}
	switch first := strings.ToLower(parts[0]); {
	case slices.Contains([]string{"deny", "block", "drop", "reject", "-", "!"}, first):
		return problem, "remove the rule: there are none that deny, and what no rule allows is closed"
	case slices.Contains([]string{"allow", "permit", "accept", "+"}, first):
		return problem, fmt.Sprintf("remove %q: every rule allows", parts[0])
	}
	word := parts[0]
	for _, part := range parts[1:] {
		if !strings.ContainsAny(word[len(word)-1:]+part[:1], ":,") {
			if strings.Contains(strings.TrimPrefix(word, "["), ":") && !strings.HasSuffix(word, "]") {
				return problem, fix
			}
			word += ":"
		}
		word += part
	}
	if _, err := ParseRule(word); err == nil {
		fix = fmt.Sprintf("write %q", word)
	}
	return problem, fix
}

// bare brackets the IPv6 address or range of a word such as
// "2001:db8::/32:443", and false for any other word.
func bare(s string) (word string, ok bool) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return "", false
	}
	if _, err := parsePorts(s[at+1:]); err != nil {
		return "", false
	}
	p, err := ParseCIDR("", s[:at])
	if err != nil || !p.Addr().Is6() {
		return "", false
	}
	return fmt.Sprintf("[%s]:%s", s[:at], s[at+1:]), true
}

// ParseCIDR reads a prefix; a bare address is its own narrowest prefix. Codes:
// invalid.
func ParseCIDR(field, s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err == nil {
		return p, nil
	}
	target, ports, err := splitPorts(field, s)
	if _, bad := netip.ParsePrefix(target); err == nil && len(ports) > 0 && bad == nil {
		return p, Invalid(field, fmt.Sprintf("%q has a port", s), fmt.Sprintf("write the CIDR alone, as %q, and its ports in ports", target))
	}
	return p, Invalid(field, fmt.Sprintf("%q is not a CIDR", s), `write an address and a prefix length, as "203.0.113.0/24" or "2001:db8::/32"`)
}

// splitPorts takes a word apart. Without a port it gives none.
func splitPorts(field, s string) (target string, ports []uint16, err error) {
	text := ""
	if rest, ok := strings.CutPrefix(s, "["); ok {
		target, text, ok = strings.Cut(rest, "]")
		if !ok || text != "" && text[0] != ':' {
			return "", nil, Invalid(field, fmt.Sprintf("%q has an unclosed bracket", s), `write "[2001:db8::1]:443"`)
		}
		if !strings.Contains(target, ":") {
			return "", nil, Invalid(field, fmt.Sprintf("%q has brackets around what is not an IPv6 address", s), "remove the brackets")
		}
		if text == "" {
			return target, nil, nil
		}
		text = text[1:]
	} else if strings.Count(s, ":") != 1 || strings.Contains(s, "://") {
		return s, nil, nil
	} else {
		target, text, _ = strings.Cut(s, ":")
	}
	if ports, err = parsePorts(text); err != nil {
		what := "port"
		if strings.Contains(text, ",") {
			what = "ports"
		}
		return "", nil, Invalid(field, fmt.Sprintf("%q has the %s %q", s, what, text), portsFix)
	}
	return target, ports, nil
}

// parsePorts reads "80,443".
func parsePorts(text string) ([]uint16, error) {
	var ports []uint16
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(one, 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("not a port")
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}
