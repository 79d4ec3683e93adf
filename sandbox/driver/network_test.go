package driver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestEntries decides every entry that a person may write into an allowlist:
// in which canonical form it is accepted, or with which fix it is refused. The
// released command and Terraform read the same file, in whose "doors" stands
// what they answer otherwise: they know names in other scripts.
func TestEntries(t *testing.T) {
	raw, err := os.ReadFile("testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Name, In     string
		Want         string // canonical; "" = refused
		Problem, Fix string // in the error, and in its hint
	}
	if err := json.Unmarshal(raw, &entries); err != nil || len(entries) < 70 {
		t.Fatalf("%d entries: %v", len(entries), err)
	}
	for _, c := range entries {
		t.Run(c.Name, func(t *testing.T) {
			got, err := canonicalEntry(c.In)
			if c.Want != "" {
				if err != nil || got != c.Want {
					t.Fatalf("%q gives %q, %v; want %q", c.In, got, err, c.Want)
				}
				return
			}
			var e *driver.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q gives %q, %v; want it refused", c.In, got, err)
			}
			if e.Code != driver.CodeInvalid || e.Field == "" || e.Hint == "" {
				t.Errorf("refused as %#v; want code invalid with field and hint", e)
			}
			if !strings.Contains(e.Err.Error(), c.Problem) || !strings.Contains(e.Hint, c.Fix) {
				t.Errorf("refused with %v; want problem %q and fix %q", err, c.Problem, c.Fix)
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
// nothing: otherwise a plan would never be empty, and a provider's order could
// turn a refusal into a permission (M27).
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

// The longest list that there may be is taken, and beyond it the error says how
// many there are. Many rules for one target are one rule, at the same price.
func TestAListHasABound(t *testing.T) {
	list := func(n int) []driver.Rule {
		out := make([]driver.Rule, n)
		for i := range out {
			out[i] = driver.Rule{Host: fmt.Sprintf("h%d.example", i%5000), Ports: []uint16{uint16(1 + i)}, Why: fmt.Sprint(i)}
		}
		return out
	}
	got, err := driver.Canonical(list(driver.MaxRules))
	if err != nil || len(got) != 5000 || len(got[0].Ports) != driver.MaxRules/5000 {
		t.Errorf("got %d rules, %v", len(got), err)
	}
	for _, n := range []int{driver.MaxRules + 1, 200_000} {
		_, err := driver.Canonical(list(n))
		p := driver.Problems(err)
		if len(p) != 1 || p[0].Code != driver.CodeInvalid || p[0].Field != "network.egress" || p[0].Hint == "" || !strings.Contains(err.Error(), fmt.Sprintf("%d rules", n)) || !strings.Contains(err.Error(), fmt.Sprint(driver.MaxRules)) {
			t.Errorf("%d rules: %v", n, err)
		}
	}
	if driver.MaxRules < 10_000 {
		t.Errorf("a list has %d rules at most", driver.MaxRules)
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

// A host that is something else is told what it is, and where that belongs.
func TestWhatIsNoHostIsToldApart(t *testing.T) {
	for host, want := range map[string][2]string{
		"example.com:443":     {"has a port", `write the host alone, as "example.com", and 443 in ports`},
		"*.example.com:80,81": {"has a port", `"*.example.com", and 80,81 in ports`},
		"203.0.113.7:443":     {"is an address with a port", `the CIDR "203.0.113.7/32", and 443 in ports`},
		"2001:db8::1":         {"is an address", `a CIDR, as "2001:db8::1/128"`},
		"203.0.113.7":         {"looks like an address", `as a CIDR`},
		"203.0.113.0/24":      {"is a CIDR", `not as a host: "203.0.113.0/24"`},
		"example.com:https":   {"has a colon", `write the host alone`},
		"a:b:c":               {"has a colon", `write the host alone`},
		"deny example.com":    {"contains white space", `write one host name alone`},
		" example.com":        {"is surrounded by white space", `remove it`},
		"https://example.com": {"is not a host name", `without scheme`},
	} {
		_, err := driver.Canonical([]driver.Rule{{Host: host}})
		p := driver.Problems(err)
		if len(p) != 1 || !strings.HasPrefix(p[0].Err.Error(), fmt.Sprintf("%q %s", host, want[0])) || !strings.Contains(p[0].Hint, want[1]) {
			t.Errorf("%q: %v; want %q", host, err, want)
		}
	}
}

func TestWhatIsNoCIDRIsToldApart(t *testing.T) {
	for cidr, want := range map[string][2]string{
		"203.0.113.0/24:443":    {"has a port", `write the CIDR alone, as "203.0.113.0/24", and its ports in ports`},
		"[2001:db8::/32]:80,81": {"has a port", `as "2001:db8::/32"`},
		"203.0.113.0/33":        {"is not a CIDR", "prefix length"},
		"[2001:db8::/32]":       {"is not a CIDR", "prefix length"},
		"example.com":           {"is not a CIDR", "prefix length"},
	} {
		_, err := driver.ParseCIDR("cidr", cidr)
		p := driver.Problems(err)
		if len(p) != 1 || p[0].Field != "cidr" || !strings.Contains(p[0].Err.Error(), want[0]) || !strings.Contains(p[0].Hint, want[1]) {
			t.Errorf("%q: %v; want %q", cidr, err, want)
		}
	}
}

// A rule without ports is written without a colon.
func TestRulesAreWrittenAsWords(t *testing.T) {
	for want, r := range map[string]driver.Rule{
		"0.0.0.0/0":             {Prefix: netip.MustParsePrefix("0.0.0.0/0")},
		"[2001:db8::1/128]":     {Prefix: netip.MustParsePrefix("2001:db8::1/128")},
		"example.com":           {Host: "example.com"},
		"example.com:80,443":    {Host: "example.com", Ports: []uint16{80, 443}},
		"[2001:db8::/32]:1,443": {Prefix: netip.MustParsePrefix("2001:db8::/32"), Ports: []uint16{1, 443}},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
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
	for _, s := range []string{"example.com:443", "*.example.com", "10.0.0.5/8:5432", "[2001:db8::/32]:443", "::1", "[::1]:443", "fe80::1%eth0", "::ffff:10.0.0.0/104", "https://a/b", "a:b:c", "[", "]", "a.b:80,443", "a.b:80,", "10.0.0.0/8:443,8443", "[::1]:80,443", "2001:db8::/32:443", "a.b 443", "deny a.b"} {
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
		for _, word := range []string{r.String(), c.String()} {
			again, err := driver.ParseRule(word)
			if err != nil {
				t.Fatalf("%q is not read back: %v", word, err)
			}
			if back, err := driver.Canonical([]driver.Rule{again}); err != nil || !reflect.DeepEqual(back, once) {
				t.Fatalf("%q of %v was read back as %v, %v", word, once, back, err)
			}
		}
	})
}
