package egress_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestLint(t *testing.T) {
	t.Parallel()
	list := func(w ...string) []string { return w }
	for _, c := range []struct {
		name  string
		rules []string
		mode  driver.Mode
		want  []string // "rule kind", "!" in front when it denies
		text  string   // in the first finding
		fix   string   // of it, if anything is said of that
	}{
		{name: "nothing is wrong with no rules"},
		{name: "nor with a few good ones", rules: list("api.example.com", "*.pkg.example.com:443", "203.0.113.0/24:22")},
		{name: "the same in capitals", rules: list("a.example.com", "A.Example.COM."), want: list("1 duplicate"), text: "an earlier rule"},
		{name: "the same range with other host bits", rules: list("203.0.113.0/24", "203.0.113.9/24:443"), want: list("1 masked", "1 duplicate"), text: "203.0.113.9/24 is written with an address inside it, and means all of 203.0.113.0/24"},
		{name: "an address with the length of its network", rules: list("203.0.113.77/24:443"), want: list("0 masked"), fix: "write 203.0.113.0/24, or 203.0.113.77/32 for the address alone"},
		{name: "a metadata address with the length of its network", rules: list("169.254.169.254/16"), want: list("0 masked", "0 protected", "0 holes", "0 wide"), fix: "write 169.254.0.0/16"},
		{name: "a mapped range without host bits", rules: list("::ffff:203.0.113.0/120")},
		{name: "another port of the same host is no duplicate", rules: list("a.example.com:443", "a.example.com:8443")},
		{name: "a host below a wildcard", rules: list("a.example.com:443", "*.example.com"), want: list("0 shadowed"), text: "*.example.com:80,443"},
		{name: "a wildcard below a wildcard", rules: list("*.b.example.com", "*.example.com"), want: list("0 shadowed")},
		{name: "a host below a wildcard on another port", rules: list("a.example.com:8443", "*.example.com")},
		{name: "the domain of a wildcard is not below it", rules: list("example.com", "*.example.com")},
		{name: "a range inside a range", rules: list("203.0.113.0/24", "203.0.113.0/28"), want: list("1 shadowed")},
		{name: "a private range inside every address is not allowed by that", rules: list("10.1.0.0/16:22", "0.0.0.0/0:22"), want: list("0 protected", "0 wide", "1 holes", "1 wide")},
		{name: "metadata (M14)", rules: list("169.254.169.254:80"), want: list("!0 metadata"), text: "credentials"},
		{name: "IPv6 metadata (M14)", rules: list("fd00:ec2::254"), mode: driver.Proxy, want: list("!0 metadata")},
		{name: "link-local addresses, with metadata inside", rules: list("169.254.0.0/16"), want: list("0 protected", "0 holes", "0 wide"), text: "link-local"},
		{name: "IPv6 link-local (M14)", rules: list("fe80::/64"), mode: driver.Proxy, want: list("0 protected", "0 holes"), text: "link-local"},
		{name: "loopback", rules: list("127.0.0.1:8080"), want: list("0 protected")},
		{name: "multicast", rules: list("224.0.0.0/24"), want: list("0 never")},
		{name: "broadcast (M09)", rules: list("255.255.255.255"), want: list("0 never")},
		{name: "every address", rules: list("0.0.0.0/0"), want: list("0 holes", "0 wide"), text: "stay closed", fix: "narrow it to what the program needs; a protected range takes a rule of its own, which the policy has to allow (SBX-NET-004, SBX-NET-005)"},
		{name: "a wide range", rules: list("8.0.0.0/19"), want: list("0 wide"), text: "/20"},
		{name: "a wide IPv6 range", rules: list("2600::/32"), mode: driver.Proxy, want: list("0 wide"), text: "/48"},
		{name: "a top-level domain", rules: list("*.com"), want: list("0 wide"), text: "anybody"},
		{name: "a name that nobody resolves", rules: list("printer.local"), want: list("0 never")},
		{name: "a host on a port that names none", rules: list("a.example.com:22"), want: list("!0 unenforceable"), text: "SSH", fix: "remove the rule for a.example.com; only a rule for a CIDR can have port 22, if the policy allows it (SBX-NET-010)"},
		{name: "IPv6 in transparent mode", rules: list("2600:1::/48"), want: list("!0 unenforceable")},
		{name: "a name server by TLS", rules: list("dns.example.com:853"), want: list("0 resolver")},
		{name: "a name server", rules: list("203.0.113.53:53"), want: list("0 resolver"), fix: "remove the rule for 203.0.113.53/32, and name the hosts that the program needs"},
		{name: "a name server and what else is there", rules: list("203.0.113.53:53,443"), want: list("0 resolver"), fix: "take port 53 out of the rule for 203.0.113.53/32, and name the hosts that the program needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := egress.Lint(rules(t, c.rules...), c.mode)
			var got []string
			for _, f := range found {
				deny := ""
				if f.Deny {
					deny = "!"
				}
				got = append(got, deny+string(rune('0'+f.Rule))+" "+string(f.Kind))
				if f.Text == "" || f.Fix == "" {
					t.Errorf("%+v says too little", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if len(found) > 0 && !strings.Contains(found[0].Text, c.text) {
				t.Errorf("%q does not say %q", found[0].Text, c.text)
			}
			if len(found) > 0 && c.fix != "" && found[0].Fix != c.fix {
				t.Errorf("the fix is %q, want %q", found[0].Fix, c.fix)
			}
		})
	}
}

func TestLintTellsOfAMalformedRuleOnlyThat(t *testing.T) {
	t.Parallel()
	got := egress.Lint([]driver.Rule{{Host: "a.example.com"}, {Host: "*"}, {Host: "b.example.com", Prefix: netip.MustParsePrefix("10.0.0.0/8")}, {Host: "A.example.com"}}, driver.Transparent)
	var kinds []egress.Kind
	for _, f := range got {
		kinds = append(kinds, f.Kind)
	}
	if diff := cmp.Diff([]egress.Kind{egress.KindMalformed, egress.KindMalformed, egress.KindDuplicate}, kinds); diff != "" {
		t.Fatal(diff)
	}
	if got[0].Field != "host" || got[0].Rule != 1 || got[1].Field != "" || got[2].Rule != 3 {
		t.Errorf("got %+v", got)
	}
}

// What is said to be shadowed or a duplicate can go without a difference.
func FuzzLint(f *testing.F) {
	f.Add("a.example.com\n*.example.com\n10.0.0.0/8\n10.1.0.0/16:443\n0.0.0.0/0")
	f.Add("a.b.example\nA.b.example.\n*.b.example:443\n::/0\nfc00::/7")
	f.Fuzz(func(t *testing.T, text string) {
		var in []driver.Rule
		for line := range strings.SplitSeq(text, "\n") {
			if r, err := driver.ParseRule(line); err == nil && len(in) < 50 {
				in = append(in, r)
			}
		}
		found := egress.Lint(in, driver.Proxy)
		var bad []int
		for _, f := range found {
			if f.Kind == egress.KindMalformed {
				bad = append(bad, f.Rule)
			}
		}
		var good []driver.Rule
		for i, r := range in {
			if !slices.Contains(bad, i) {
				good = append(good, r)
			}
		}
		all, err := egress.Compile(good, egress.Options{})
		if err != nil {
			t.Fatalf("%v: %v", good, err)
		}
		for _, f := range found {
			if f.Kind != egress.KindShadowed && f.Kind != egress.KindDuplicate {
				continue
			}
			var rest []driver.Rule
			for i, r := range in {
				if !slices.Contains(bad, i) && i != f.Rule {
					rest = append(rest, r)
				}
			}
			without, err := egress.Compile(rest, egress.Options{})
			if err != nil {
				t.Fatal(err)
			}
			one, err := driver.Canonical(in[f.Rule : f.Rule+1])
			if err != nil {
				t.Fatal(err)
			}
			r := egress.Request{Host: strings.Replace(one[0].Host, "*.", "x.y.", 1), Port: one[0].Ports[0]}
			if len(r.Host) > 253 {
				continue
			}
			if r.Host == "" {
				r.Addr = one[0].Prefix.Addr()
			}
			if a, b := all.Decide(r), without.Decide(r); a.Allowed != b.Allowed {
				t.Fatalf("%+v, but %v is %v with it and %v without", f, r, a, b)
			}
		}
	})
}

// A list that is too long is told as such, not rule by rule; one that is not
// is judged, though every port of a target has a rule of its own.
func TestLintHasABound(t *testing.T) {
	t.Parallel()
	list := make([]driver.Rule, driver.MaxRules+1)
	for i := range list {
		list[i] = driver.Rule{Host: "a.example.com", Ports: []uint16{uint16(10_000 + i)}}
	}
	if got := egress.Lint(list[1:], driver.Proxy); slices.ContainsFunc(got, func(f egress.Finding) bool { return f.Kind != egress.KindUnenforceable }) {
		t.Errorf("got %v", got)
	}
	got := egress.Lint(list, driver.Proxy)
	if len(got) != 1 || got[0].Kind != egress.KindTooMany || got[0].Rule != -1 || !got[0].Deny || !strings.Contains(got[0].Text, "50001 rules") || got[0].Fix == "" {
		t.Errorf("got %v", got)
	}
}
