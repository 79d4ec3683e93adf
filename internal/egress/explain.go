package egress

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Explanation is a Decision for a person.
type Explanation struct {
	Request string  `json:"request"` // canonical, as "example.com:443"
	Allowed bool    `json:"allowed"`
	Reason  Reason  `json:"reason"`
	Text    string  `json:"text"`
	Rule    *string `json:"rule"`    // what allowed it
	Nearest *string `json:"nearest"` // the rule that comes nearest to allowing it; null when none is near
	Fix     string  `json:"fix"`     // "" when it is allowed

	// Missing is the rule that Fix advises, if it does: it allows just this.
	Missing *driver.Rule `json:"-"`
}

// Explain says why a request is allowed or refused.
func (p *Policy) Explain(r Request) Explanation {
	d := p.Decide(r)
	e := Explanation{Request: r.String(), Allowed: d.Allowed, Reason: d.Reason, Text: d.Reason.Text()}
	if p == nil {
		p = &Policy{}
	}
	if d.Allowed {
		e.Rule = new(p.rules[d.Rule].String())
		e.Text = e.Text + ": " + *e.Rule
		return e
	}
	nearest := p.nearest(r)
	if nearest >= 0 {
		e.Nearest = new(p.rules[nearest].String())
	}
	by, protected := p.protectedBy(r.Addr)
	protected = protected && r.Addr.IsValid()
	switch d.Reason {
	case NoRules, Host, Address:
		if nearest >= 0 {
			e.Text += unlike(p.rules[nearest], r)
		}
	case Port:
		e.Text += fmt.Sprintf(": %s is allowed", *e.Nearest)
	case Protected:
		e.Text = fmt.Sprintf("%s is a %s address, which is opened only by a rule for %s or a part of it", r.Addr, by.Class, by.Prefix)
	default: // Malformed; the others are the gateway's to say
		e.Fix = `ask for a full host name or an address, and a port, as "example.com:443" or "[2001:db8::1]:443"`
		return e
	}
	if protected {
		e.Fix = instead(by.Class)
		return e
	}
	e.Missing = new(missing(r))
	e.Fix = fmt.Sprintf("add a rule for %s, if it is meant", *e.Missing)
	return e
}

// instead is what to do rather than open a protected address.
func instead(c driver.Class) string {
	switch c {
	case driver.ClassMetadata, driver.ClassLinkLocal:
		return "leave it closed (remove the rule, if there is one), and give the sandbox a scoped secret instead of the host's identity"
	case driver.ClassLoopback:
		return "in a sandbox this is the sandbox itself, which needs no rule; publish what is elsewhere at a public address"
	case driver.ClassPrivate, driver.ClassShared:
		return "publish the service at a public address; or name no more than it needs in a rule, which the policy has to allow (SBX-NET-005, allowed_private_cidrs)"
	case driver.ClassMulticast, driver.ClassUnspecified, driver.ClassReserved:
		return "leave it closed: no connection leads there"
	default:
		return "leave it closed, and publish the service at another address"
	}
}

// String is the request as one word.
func (r Request) String() string {
	if r.Host == "" && r.Addr.IsValid() {
		return netip.AddrPortFrom(r.Addr.Unmap(), r.Port).String()
	}
	host, err := driver.CanonicalHost(r.Host)
	if err != nil {
		host = fmt.Sprintf("%+q", r.Host) // whoever made it up does not write on terminals
	}
	text := fmt.Sprintf("%s:%d", host, r.Port)
	if r.Addr.IsValid() {
		text += " at " + r.Addr.String()
	}
	return text
}

// missing is the rule that would allow just this request.
func missing(r Request) driver.Rule {
	rule := driver.Rule{Ports: []uint16{r.Port}}
	if r.Host == "" {
		a := r.Addr.Unmap().WithZone("")
		rule.Prefix = netip.PrefixFrom(a, a.BitLen())
	} else {
		rule.Host, _ = driver.CanonicalHost(r.Host)
	}
	return rule
}

// unlike says how the nearest rule differs, where that is easily overlooked.
func unlike(near driver.Rule, r Request) string {
	host, err := driver.CanonicalHost(r.Host)
	base, wild := strings.CutPrefix(near.Host, "*.")
	switch {
	case r.Host == "" || err != nil:
		return ""
	case wild && host == base:
		return fmt.Sprintf(": %s stands for the subdomains of %s only", near.Host, base)
	case !wild && strings.HasSuffix(host, "."+near.Host):
		return fmt.Sprintf(": %s stands for that name alone", near.Host)
	}
	return ""
}

// nearest is the rule that comes nearest to allowing a refused request, or -1.
func (p *Policy) nearest(r Request) int {
	best, nearness := -1, 0
	host, err := driver.CanonicalHost(r.Host)
	for i, rule := range p.rules {
		n := 0
		switch {
		case r.Host != "" && rule.Host != "" && err == nil:
			n = likeness(rule.Host, host)
		case r.Host == "" && r.Addr.IsValid() && rule.Host == "":
			n = common(rule.Prefix, r.Addr.Unmap())
		}
		if n > nearness {
			best, nearness = i, n
		}
	}
	return best
}

// likeness of a rule for a host and a name, 0 for none: that it matches, that
// one is below the other, a slip of the pen, labels in common at the end.
func likeness(rule, host string) int {
	base, wild := strings.CutPrefix(rule, "*.")
	switch {
	case rule == host:
		return 1000
	case wild && strings.HasSuffix(host, "."+base):
		return 900 - strings.Count(host, ".") + strings.Count(base, ".")
	case base == host, strings.HasSuffix(host, "."+base):
		return 500 + strings.Count(base, ".")
	case slip(base, host):
		return 400
	}
	a, b := strings.Split(base, "."), strings.Split(host, ".")
	same := 0
	for same < len(a) && same < len(b) && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	if same < 2 {
		return 0 // all of .com is not near
	}
	return same
}

// slip reports whether one letter was added, left out, changed, or swapped
// with its neighbour.
func slip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// common says how many bits of a rule's prefix an address shares, 0 when fewer
// than an allocation has.
func common(p netip.Prefix, a netip.Addr) int {
	if p.Addr().BitLen() != a.BitLen() {
		return 0
	}
	n := p.Bits()
	for n > 0 && !netip.PrefixFrom(p.Addr(), n).Contains(a.WithZone("")) {
		n--
	}
	switch {
	case n == p.Bits():
		return 1000 + n // it holds the address
	case n < a.BitLen()/4:
		return 0
	}
	return n
}
