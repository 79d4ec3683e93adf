package driver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestEntries decides every entry that a person may write into an allowlist:
// in which canonical form it is accepted, or with which fix it is refused.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     string // canonical; "" = refused
		problem  string // in the error
		fix      string // in the hint
	}{
		{name: "a host", in: "example.com", want: "example.com:80,443"},
		{name: "upper case is lowered", in: "EXAMPLE.com", want: "example.com:80,443"},
		{name: "one final dot goes (M02)", in: "example.com.", want: "example.com:80,443"},
		{name: "two final dots do not", in: "example.com..", problem: "empty label"},
		{name: "a dot alone", in: ".", problem: "empty label"},
		{name: "two dots", in: "..", problem: "begins with a dot"},
		{name: "white space is not trimmed away", in: " example.com ", problem: "white space", fix: "remove"},
		{name: "a wildcard stands for subdomains (M07)", in: "*.example.com", want: "*.example.com:80,443"},
		{name: "a wildcard with a port", in: "*.EXAMPLE.com.:8443", want: "*.example.com:8443"},
		{name: "a wildcard inside a label", in: "*example.com", problem: "wildcard", fix: "subdomains"},
		{name: "a wildcard after another", in: "*.*.example.com", problem: "wildcard"},
		{name: "a wildcard in the middle", in: "api.*.example.com", problem: "wildcard"},
		{name: "a wildcard for everything (M04)", in: "*", problem: "wildcard", fix: "no wildcard for everything"},
		{name: "a wildcard without a name", in: "*.", problem: "wildcard"},
		{name: "a top-level domain's subdomains are for the policy to judge", in: "*.com", want: "*.com:80,443"},
		{name: "a leading dot (M07)", in: ".example.com", problem: "begins with a dot", fix: `"*.example.com"`},
		{name: "a U-label (M01)", in: "bücher.example", problem: "not ASCII", fix: "xn--bcher-kva.example"},
		{name: "its A-label (M01)", in: "xn--bcher-kva.example", want: "xn--bcher-kva.example:80,443"},
		{name: "an A-label prefix alone", in: "xn--.example", problem: "'-'"},
		{name: "an A-label prefix as a whole name", in: "xn--", problem: "'-'"},
		{name: "a zero-width space (M03)", in: "ex\u200bample.com", problem: "not ASCII"},
		{name: "a byte order mark (M03)", in: "\ufeffexample.com", problem: "not ASCII"},
		{name: "an ideographic full stop (M03)", in: "example\u3002com", problem: "not ASCII"},
		{name: "a soft hyphen (M03)", in: "exam\u00adple.com", problem: "not ASCII"},
		{name: "a NUL (M03)", in: "example.com\x00.evil.example", problem: "control character"},
		{name: "a line break (M03)", in: "example.com\r\nevil.example", problem: "control character"},
		{name: "a blank", in: "exa mple.com", problem: "white space"},
		{name: "a percent escape", in: "example%2ecom", problem: `'%'`},
		{name: "a port (M28)", in: "example.com:443", want: "example.com:443"},
		{name: "port 0", in: "example.com:0", problem: `port "0"`, fix: "between 1 and 65535"},
		{name: "port 70000", in: "example.com:70000", problem: `port "70000"`, fix: "between 1 and 65535"},
		{name: "a signed port", in: "example.com:+443", problem: `port "+443"`},
		{name: "an empty port", in: "example.com:", problem: `port ""`},
		{name: "a named port", in: "example.com:https", problem: `port "https"`},
		{name: "two ports", in: "example.com:443:80", problem: "has a port"},
		{name: "a URL", in: "https://example.com/path", problem: "not a host name", fix: "without scheme"},
		{name: "a path", in: "example.com/path", problem: "CIDR", fix: "address"},
		{name: "a user", in: "user@example.com", problem: "not a host name", fix: "user"},
		{name: "a single label", in: "localhost", problem: "single label", fix: "full name"},
		{name: "an IPv4 address", in: "127.0.0.1", want: "127.0.0.1/32:80,443"},
		{name: "an IPv4 address with a port", in: "203.0.113.7:22", want: "203.0.113.7/32:22"},
		{name: "a short form of an address", in: "127.1", problem: "looks like an address", fix: "CIDR"},
		{name: "an address as one number", in: "2130706433", problem: "looks like an address", fix: "CIDR"},
		{name: "an address in hexadecimal", in: "0x7f.0.0.1", problem: "looks like an address"},
		{name: "an address in hexadecimal as one number", in: "0x7f000001", problem: "looks like an address"},
		{name: "an address in octal", in: "0177.0.0.1", problem: "looks like an address"},
		{name: "an address with a final dot", in: "127.0.0.1.", problem: "looks like an address"},
		{name: "a wildcard over an address", in: "*.0.0.1", problem: "looks like an address"},
		{name: "an IPv6 address", in: "::1", want: "[::1/128]:80,443"},
		{name: "an IPv6 address with a port", in: "[::1]:443", want: "[::1/128]:443"},
		{name: "an IPv6 range with a port", in: "[2001:DB8::/32]:443", want: "[2001:db8::/32]:443"},
		{name: "an IPv4-mapped address", in: "::ffff:10.0.0.5", want: "10.0.0.5/32:80,443"},
		{name: "an IPv4-mapped range", in: "::ffff:10.0.0.0/104", want: "10.0.0.0/8:80,443"},
		{name: "more than the IPv4-mapped addresses", in: "::ffff:0:0/95", problem: "IPv4-mapped", fix: "two rules"},
		{name: "an address with a zone", in: "fe80::1%eth0", problem: "zone", fix: "%"},
		{name: "an open bracket", in: "[::1", problem: "bracket"},
		{name: "text after a bracket", in: "[::1]x", problem: "bracket"},
		{name: "brackets around a host", in: "[example.com]:443", problem: "brackets", fix: "remove the brackets"},
		{name: "a range", in: "10.0.0.0/8", want: "10.0.0.0/8:80,443"},
		{name: "a range with a port", in: "10.0.0.0/8:5432", want: "10.0.0.0/8:5432"},
		{name: "a range with host bits is masked", in: "10.0.0.5/8", want: "10.0.0.0/8:80,443"},
		{name: "everything in IPv4 is for the policy to judge", in: "0.0.0.0/0", want: "0.0.0.0/0:80,443"},
		{name: "everything in IPv6 is for the policy to judge", in: "::/0", want: "[::/0]:80,443"},
		{name: "a prefix length beyond the address", in: "10.0.0.0/33", problem: "not a CIDR", fix: "203.0.113.0/24"},
		{name: "a netmask", in: "10.0.0.0/255.0.0.0", problem: "not a CIDR"},
		{name: "a range with a zone", in: "fe80::%eth0/64", problem: "zone"},
		{name: "nothing", in: "", problem: "empty label"},
		{name: "a host of 253 characters", in: long(253), want: long(253) + ":80,443"},
		{name: "a host of 254 characters", in: long(254), problem: "longer than 253"},
		{name: "a label of 63 characters", in: strings.Repeat("a", 63) + ".example", want: strings.Repeat("a", 63) + ".example:80,443"},
		{name: "a label of 64 characters", in: strings.Repeat("a", 64) + ".example", problem: "longer than 63"},
		{name: "a service name", in: "_srv._tcp.example.com", problem: `'_'`},
		{name: "a label with a hyphen at its end", in: "a-.example.com", problem: "'-'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := canonicalEntry(c.in)
			if c.want != "" {
				if err != nil || got != c.want {
					t.Fatalf("%q gives %q, %v; want %q", c.in, got, err, c.want)
				}
				return
			}
			var e *driver.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q gives %q, %v; want it refused", c.in, got, err)
			}
			if e.Code != driver.CodeInvalid || e.Field == "" || e.Hint == "" {
				t.Errorf("refused as %#v; want code invalid with field and hint", e)
			}
			if !strings.Contains(e.Err.Error(), c.problem) || !strings.Contains(e.Hint, c.fix) {
				t.Errorf("refused with %v; want problem %q and fix %q", err, c.problem, c.fix)
			}
		})
	}
}

func canonicalEntry(in string) (string, error) {
	r, err := driver.ParseRule(in)
	if err != nil {
		return "", err
	}
	c, err := driver.Canonical([]driver.Rule{r})
	if err != nil {
		return "", err
	}
	return c[0].String(), nil
}

// long is a host name of n characters.
func long(n int) string {
	s := strings.Repeat("a", n-248) + strings.Repeat("."+strings.Repeat("b", 61), 4)
	if len(s) != n {
		panic(len(s))
	}
	return s
}

func TestCanonical(t *testing.T) {
	rules := func(words ...string) []driver.Rule {
		t.Helper()
		var out []driver.Rule
		for _, w := range words {
			r, err := driver.ParseRule(w)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	for _, c := range []struct {
		name string
		in   []driver.Rule
		want []string
	}{
		{"nil reaches nothing (M18)", nil, nil},
		{"empty is nil (M19)", []driver.Rule{}, nil},
		{"duplicates are one", rules("example.com", "EXAMPLE.com.", "example.com"), []string{"example.com:80,443"}},
		{"ports of one target are joined", rules("example.com:8443", "example.com:443", "example.com:8443"), []string{"example.com:443,8443"}},
		{"a host and its subdomains are two targets", rules("*.example.com", "example.com"), []string{"*.example.com:80,443", "example.com:80,443"}},
		{"a mapped range is the range", rules("::ffff:10.0.0.0/104", "10.1.2.3/8"), []string{"10.0.0.0/8:80,443"}},
		{"sorted: ranges, then hosts", rules("b.example", "[2001:db8::]:1", "10.0.0.0/8:1", "a.example"),
			[]string{"10.0.0.0/8:1", "[2001:db8::/128]:1", "a.example:80,443", "b.example:80,443"}},
		{"a range and a narrower one stay two", rules("10.0.0.0/8", "10.0.0.0/16"), []string{"10.0.0.0/8:80,443", "10.0.0.0/16:80,443"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := driver.Canonical(c.in)
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, r := range got {
				text = append(text, r.String())
			}
			if diff := cmp.Diff(c.want, text); diff != "" {
				t.Error(diff)
			}
			if len(c.want) == 0 && got != nil {
				t.Errorf("got %#v, want nil: deny has one form", got)
			}
		})
	}
}

func TestCanonicalNamesEveryProblem(t *testing.T) {
	_, err := driver.Canonical([]driver.Rule{
		{Host: "ok.example"},
		{Host: "*"},
		{},
		{Host: "a.example", Prefix: netip.MustParsePrefix("10.0.0.0/8")},
		{Host: "a.example", Ports: []uint16{443, 0}},
		{Prefix: netip.MustParsePrefix("::ffff:0:0/90")},
	})
	var fields []string
	for _, p := range driver.Problems(err) {
		fields = append(fields, p.Field)
		if p.Code != driver.CodeInvalid || p.Hint == "" {
			t.Errorf("%v: want code invalid and a hint", p)
		}
	}
	want := []string{"network.egress[1].host", "network.egress[2]", "network.egress[3]", "network.egress[4].ports", "network.egress[5].cidr"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
}

func TestCanonicalDoesNotTouchItsInput(t *testing.T) {
	in := []driver.Rule{{Host: "B.example", Ports: []uint16{9, 1}}, {Host: "a.example"}}
	if _, err := driver.Canonical(in); err != nil {
		t.Fatal(err)
	}
	want := []driver.Rule{{Host: "B.example", Ports: []uint16{9, 1}}, {Host: "a.example"}}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("input became %v", in)
	}
}

// The order in which rules were written, and writing them twice, change
// nothing: otherwise a plan would never be empty.
func TestCanonicalIsAFunctionOfTheSet(t *testing.T) {
	in := []driver.Rule{
		{Host: "a.example", Why: "second; first"}, {Host: "A.example", Ports: []uint16{1}, Why: "third"}, {Host: "a.example."},
		{Host: "*.a.example", Why: "only; this"}, {Host: "*.a.example"}, {Prefix: netip.MustParsePrefix("10.1.0.0/8"), Why: "x"},
		{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Ports: []uint16{22}, Why: "x"},
	}
	want, err := driver.Canonical(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := want[1].Why; got != "only; this" {
		t.Errorf("a single reason became %q", got)
	}
	for range 200 {
		rand.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		for _, set := range [][]driver.Rule{in, want, append(append([]driver.Rule{}, in...), in...), append(append([]driver.Rule{}, in...), want...)} {
			got, err := driver.Canonical(set)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func TestCanonicalTakesTenThousandEntries(t *testing.T) {
	var in []driver.Rule
	for i := range 10_000 {
		in = append(in, driver.Rule{Host: fmt.Sprintf("h%d.example", i%5000), Why: fmt.Sprint(i % 3)})
	}
	got, err := driver.Canonical(in)
	if err != nil || len(got) != 5000 {
		t.Errorf("got %d rules, %v", len(got), err)
	}
}

// Look-alikes of an allowed host never become it (M06).
func TestLookAlikesStayDifferent(t *testing.T) {
	for _, host := range []string{"evilchase.com", "chase.com.attacker.com", "chase-com.attacker.com", "wwwchase.com", "chase.com.au", "chase.co"} {
		got, err := driver.CanonicalHost(host)
		if err != nil || got == "chase.com" {
			t.Errorf("CanonicalHost(%q) = %q, %v", host, got, err)
		}
	}
}

func TestCanonicalHostRefusesWildcards(t *testing.T) {
	for _, host := range []string{"*.example.com", "*", "*.com"} {
		if got, err := driver.CanonicalHost(host); !errors.Is(err, driver.CodeInvalid) {
			t.Errorf("CanonicalHost(%q) = %q, %v", host, got, err)
		}
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "xn--bcher-kva.example", "*.example.com", "127.1", "a..b", "..", "\x00", "a.b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := driver.CanonicalHost(s)
		if err != nil {
			if h != "" || !errors.Is(err, driver.CodeInvalid) {
				t.Fatalf("CanonicalHost(%q) = %q, %v", s, h, err)
			}
			return
		}
		if again, err := driver.CanonicalHost(h); err != nil || again != h {
			t.Fatalf("not idempotent: %q, %q, %v", h, again, err)
		}
		if dotted, err := driver.CanonicalHost(h + "."); err != nil || dotted != h {
			t.Fatalf("a final dot matters: %q, %v", dotted, err)
		}
		if strings.Trim(h, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.HasPrefix(h, ".") || strings.HasSuffix(h, ".") ||
			strings.Contains(h, "..") || !strings.Contains(h, ".") || len(h) > 253 || !strings.EqualFold(strings.TrimSuffix(s, "."), h) {
			t.Fatalf("%q became %q", s, h)
		}
		if _, err := netip.ParseAddr(h); err == nil {
			t.Fatalf("%q is an address", h)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"example.com:443", "*.example.com", "10.0.0.5/8:5432", "[2001:db8::/32]:443", "::1", "[::1]:443", "fe80::1%eth0", "::ffff:10.0.0.0/104", "https://a/b", "a:b:c", "[", "]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := driver.ParseRule(s)
		if err != nil {
			if !errors.Is(err, driver.CodeInvalid) {
				t.Fatalf("ParseRule(%q): %v", s, err)
			}
			return
		}
		once, err := driver.Canonical([]driver.Rule{r})
		if err != nil {
			return // a mapped range that is too wide
		}
		twice, err := driver.Canonical(once)
		if err != nil || !reflect.DeepEqual(once, twice) {
			t.Fatalf("not idempotent: %v, %v, %v", once, twice, err)
		}
		c := once[0]
		if (c.Host != "") == c.Prefix.IsValid() || len(c.Ports) == 0 || c.Prefix.IsValid() && (c.Prefix != c.Prefix.Masked() || c.Prefix.Addr().Is4In6()) {
			t.Fatalf("%q became %v", s, c)
		}
		if len(c.Ports) == 1 { // such a rule is one word
			again, err := driver.ParseRule(c.String())
			if err != nil {
				t.Fatalf("%q is not read back: %v", c, err)
			}
			if back, err := driver.Canonical([]driver.Rule{again}); err != nil || !reflect.DeepEqual(back, once) {
				t.Fatalf("%v was read back as %v, %v", once, back, err)
			}
		}
	})
}
