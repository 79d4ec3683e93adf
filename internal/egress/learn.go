package egress

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Learned is what a program attempted, as rules that would have allowed it.
type Learned struct {
	Rules   []driver.Rule // canonical
	Counts  []int         // attempts, by rule
	LeftOut []Denial      // attempts for which there is no rule to recommend
}

// Learn makes rules of denied attempts. What is denied for what it is and not
// for want of a rule (malformed, protected, hidden names, wrong protocols, an
// address that nobody resolved) gets none.
func Learn(denials []Denial) Learned {
	var l Learned
	var rules []driver.Rule
	counts := map[string]int{}
	for _, d := range denials {
		r, ok := d.rule()
		if !ok {
			l.LeftOut = append(l.LeftOut, d)
			continue
		}
		rules = append(rules, r)
		counts[r.Target()] += d.Count
	}
	l.Rules, _ = driver.Canonical(rules) // each is
	for _, r := range l.Rules {
		l.Counts = append(l.Counts, counts[r.Target()])
	}
	slices.SortFunc(l.LeftOut, Denial.compare)
	return l
}

// rule is the canonical rule that would have allowed d, if there is one to
// recommend.
func (d Denial) rule() (driver.Rule, bool) {
	if !slices.Contains([]Reason{NoRules, Host, Port, Address}, d.Reason) {
		return driver.Rule{}, false
	}
	r := driver.Rule{}
	if d.Port != 0 {
		r.Ports = []uint16{d.Port}
	}
	switch {
	case d.Host != "":
		r.Host = d.Host
	case !d.Addr.IsValid() || driver.Classify(d.Addr) != driver.ClassPublic:
		return r, false
	default:
		a := d.Addr.Unmap()
		r.Prefix = netip.PrefixFrom(a, a.BitLen())
	}
	c, err := driver.Canonical([]driver.Rule{r})
	if err != nil || strings.HasPrefix(c[0].Host, "*") {
		return r, false // a wildcard is no name that was asked for
	}
	return c[0], true
}

const learnedHead = `# Attempted, and denied. The program chose every name and number below, and may
# have been told to: look up whose they are before you take a line over.
`

// HCL is an allowlist for Terraform, commented out line by line, with what
// Lint finds for the mode. Everything in it is printable ASCII, whatever was
// attempted.
func (l Learned) HCL(mode driver.Mode) string {
	var b strings.Builder
	b.WriteString(learnedHead)
	if len(l.Rules) > 0 {
		found := map[int][]Finding{}
		for _, f := range Lint(l.Rules, mode) {
			found[f.Rule] = append(found[f.Rule], f)
		}
		b.WriteString("# egress = [\n")
		for i, r := range l.Rules {
			fmt.Fprintf(&b, "#   %s, # %s\n", object(r), attempts(l.Counts[i]))
			for _, f := range found[i] {
				fmt.Fprintf(&b, "#   # %s: %s\n", f.Kind, plain(f.Text))
			}
		}
		b.WriteString("# ]\n")
	}
	if len(l.LeftOut) > 0 {
		b.WriteString("# Without a rule to recommend:\n")
		for _, d := range l.LeftOut {
			fmt.Fprintf(&b, "#   %s: %s, %s\n", d.target(), d.Reason, attempts(d.Count))
		}
	}
	return b.String()
}

func object(r driver.Rule) string {
	ports := make([]string, len(r.Ports))
	for i, p := range r.Ports {
		ports[i] = strconv.Itoa(int(p))
	}
	name := "host"
	if r.Host == "" {
		name = "cidr"
	}
	return fmt.Sprintf("{ %s = %s, ports = [%s] }", name, quote(r.Target()), strings.Join(ports, ", "))
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// target is what was asked for, fit to be printed.
func (d Denial) target() string {
	var parts []string
	if d.Host != "" {
		parts = append(parts, quote(d.Host))
	}
	if d.Addr.IsValid() {
		parts = append(parts, plain(d.Addr.String()))
	}
	if d.Port != 0 {
		parts = append(parts, "port "+strconv.Itoa(int(d.Port)))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// quote is an HCL string literal in printable ASCII, without templates.
func quote(s string) string {
	s = strconv.QuoteToASCII(s)
	// Go writes bytes that are no text as \x.., and some controls as \a, \b,
	// \f, \v, none of which HCL knows.
	for _, c := range []struct{ from, to string }{{`\a`, `\u0007`}, {`\b`, `\u0008`}, {`\f`, `\u000c`}, {`\v`, `\u000b`}} {
		s = replaceEscape(s, c.from, c.to)
	}
	s = replaceEscape(s, `\x`, `\u00`)
	s = strings.ReplaceAll(s, "${", "$${")
	return strings.ReplaceAll(s, "%{", "%%{")
}

// replaceEscape replaces an escape sequence and leaves escaped backslashes
// alone.
func replaceEscape(s, from, to string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], from):
			b.WriteString(to)
			i += len(from) - 1
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// plain is s in printable ASCII.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
