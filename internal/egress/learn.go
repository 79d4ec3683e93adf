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
	Rules   []LearnedRule // canonical
	LeftOut []LeftOut     // attempts for which there is no rule to recommend
	Other   int           // attempts beyond those told apart
}

// LearnedRule is a rule that would have allowed what was attempted.
type LearnedRule struct {
	driver.Rule
	Attempts int
	Guessed  bool // some attempt was seen without a port: the default ones are there for it
	Notes    []Note
}

// LeftOut is an attempt for which there is no rule to recommend.
type LeftOut struct {
	Denial
	Class driver.Class `json:"class,omitempty"` // of its address, unless that is public
	Notes []Note       `json:"notes,omitempty"`
}

// Note is what a policy says of a rule's target.
type Note struct {
	Rule int    `json:"-"`    // index in what was judged
	ID   string `json:"id"`   // of the policy's rule that says it
	Text string `json:"text"` //
	Bar  bool   `json:"-"`    // nobody may allow the target, so that no rule is to be recommended
}

// Judge is a policy that is asked about canonical rules.
type Judge func([]driver.Rule) ([]Note, error)

// Learn makes rules of denied attempts, and of other ones that are only
// counted. What is denied for what it is and not for want of a rule (malformed,
// protected, hidden names, wrong protocols, an address that nobody resolved)
// gets none, and neither does what the judge bars. Its error is the judge's.
func Learn(denials []Denial, other int, judge Judge) (Learned, error) {
	l := Learned{Other: other}
	by := map[string][]Denial{} // by target
	var rules []driver.Rule
	for _, d := range denials {
		r, ok := d.rule()
		if !ok {
			l.LeftOut = append(l.LeftOut, d.leftOut(nil))
			continue
		}
		rules = append(rules, r)
		by[r.Target()] = append(by[r.Target()], d)
	}
	rules, _ = driver.Canonical(rules) // each is
	var notes []Note
	if len(rules) > 0 {
		var err error
		if notes, err = judge(slices.Clone(rules)); err != nil {
			return Learned{}, err
		}
	}
	for i, r := range rules {
		learned, barred := LearnedRule{Rule: r}, false
		for _, n := range notes {
			if n.Rule == i {
				learned.Notes, barred = append(learned.Notes, n), barred || n.Bar
			}
		}
		for _, d := range by[r.Target()] {
			learned.Attempts += d.Count
			learned.Guessed = learned.Guessed || d.Port == 0
			if barred {
				l.LeftOut = append(l.LeftOut, d.leftOut(learned.Notes))
			}
		}
		if !barred {
			l.Rules = append(l.Rules, learned)
		}
	}
	slices.SortFunc(l.LeftOut, func(a, b LeftOut) int { return a.compare(b.Denial) })
	return l, nil
}

func (d Denial) leftOut(notes []Note) LeftOut {
	out := LeftOut{Denial: d, Notes: notes}
	if c := driver.Classify(d.Addr); d.Addr.IsValid() && c != driver.ClassPublic {
		out.Class = c
	}
	return out
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

// Format is a way to write a list of rules.
type Format string

const (
	FormatHCL   Format = "hcl"   // egress = […], for Terraform
	FormatRules Format = "rules" // one rule a line, as the command line reads them
)

const learnedHead = `# Attempted, and denied. The program chose every name and number below, and may
# have been told to: look up whose they are before you take a line over.
`

// Text is an allowlist, commented out line by line, with what Lint finds for
// the mode and what the judge says. Everything in it is printable ASCII,
// whatever was attempted.
func (l Learned) Text(mode driver.Mode, format Format) string {
	through := ""
	if mode == driver.Proxy {
		through = " that went to the proxy" // what goes elsewhere gets nowhere, and nobody sees it
	}
	if len(l.Rules)+len(l.LeftOut)+l.Other == 0 {
		return "# Nothing was attempted" + through + ".\n"
	}
	var b strings.Builder
	b.WriteString(learnedHead)
	if len(l.Rules) > 0 {
		l.list(&b, mode, format)
	}
	if len(l.LeftOut) > 0 {
		b.WriteString("# Without a rule to recommend:\n")
		for _, d := range l.LeftOut {
			what := string(d.Reason)
			if d.Class != "" {
				what += ", " + string(d.Class)
			}
			fmt.Fprintf(&b, "#   %s: %s, %s\n", d.target(), what, attempts(d.Count))
			for _, n := range d.Notes {
				fmt.Fprintf(&b, "#   # %s: %s\n", n.ID, plain(n.Text))
			}
		}
	}
	if l.Other > 0 {
		fmt.Fprintf(&b, "# And %s more, not told apart.\n", attempts(l.Other))
	}
	return b.String()
}

// list writes the rules. How often each was attempted is never in a place that
// would be its reason, once it is taken over.
func (l Learned) list(b *strings.Builder, mode driver.Mode, format Format) {
	rules := make([]driver.Rule, len(l.Rules))
	for i, r := range l.Rules {
		rules[i] = r.Rule
	}
	found := map[int][]Finding{}
	for _, f := range Lint(rules, mode) {
		found[f.Rule] = append(found[f.Rule], f)
	}
	if format == FormatHCL {
		b.WriteString("# egress = [\n")
	}
	for i, r := range l.Rules {
		seen := attempts(r.Attempts)
		if r.Guessed {
			seen += ", the port is not seen in this mode"
		}
		if format == FormatHCL {
			fmt.Fprintf(b, "#   %s, # %s\n", object(r.Rule), seen)
		} else {
			fmt.Fprintf(b, "# %s\n#   # %s\n", r.Rule, seen)
		}
		for _, f := range found[i] {
			fmt.Fprintf(b, "#   # %s: %s\n", f.Kind, plain(f.Text))
		}
		for _, n := range r.Notes {
			fmt.Fprintf(b, "#   # %s: %s\n", n.ID, plain(n.Text))
		}
	}
	if format == FormatHCL {
		b.WriteString("# ]\n")
	}
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
	return cmp.Or(strings.Join(parts, ", "), "no target was told")
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
