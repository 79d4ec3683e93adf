package wish

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"example.com": "example.com", "Bücher.example": "xn--bcher-kva.example", "*.bücher.example": "*.xn--bcher-kva.example", "": "",
		"not a name":            "not a name", // driver.Canonical's to refuse
		"deny bücher.example":   "deny bücher.example",
		"xn--bcher-kva.example": "xn--bcher-kva.example", "XN--bcher-KVA.example.": "XN--bcher-KVA.example.", "xn--.example": "xn--.example", "r3---sn-a.example": "r3---sn-a.example",
	} {
		if got, err := Host("at", in); got != want || err != nil {
			t.Errorf("Host(%q) = %q, %v", in, got, err)
		}
	}
	// A label that no name is written as could be read as another one (M01).
	for _, in := range []string{strings.Repeat("é", 600), "xn--é.example", "xn--example-.com", "xn--99999999999.example", "*.xn--a.example", "0.\x87", "b\xfccher.example"} {
		if got, err := Host("at", in); err == nil {
			t.Errorf("Host(%.20q) = %q", in, got)
		}
	}
}

// No character is left out in silence: what a name shows is what it is (M03).
func TestNoCharacterOfANameIsLeftOut(t *testing.T) {
	t.Parallel()
	invisible := 0
	for c := rune(0x80); c <= unicode.MaxRune; c++ {
		in := "ex" + string(c) + "ample.com"
		ascii, err := labels.ToASCII(in)
		if err != nil || ascii != "example.com" {
			continue
		}
		invisible++
		if got, err := Host("at", in); err == nil || !strings.Contains(err.Error(), "invisible") {
			t.Errorf("%U: Host(%+q) = %q, %v", c, in, got, err)
		}
	}
	if _, err := Host("at", "a\u2800b.example"); err == nil || !strings.Contains(err.Error(), "invisible") { // which IDNA keeps
		t.Errorf("the blank of Braille: %v", err)
	}
	if invisible < 20 { // IDNA's own are some 270
		t.Errorf("IDNA leaves out %d characters", invisible)
	}
	// Where a script needs it, a joiner makes another name.
	if got, err := Host("at", "نامه\u200cای.com"); err != nil || got != "xn--mgba3gch31f060k.com" {
		t.Errorf("a joiner: %q, %v", got, err)
	}
	for _, in := range []string{"ex\u200cample.com", "\u200dexample.com"} {
		if got, err := Host("at", in); err == nil {
			t.Errorf("Host(%+q) = %q", in, got)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	if d, err := Duration("at", "1h30m"); d != 90*time.Minute || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	for _, in := range []string{"0s", "-1s", "5", "", "soon"} {
		if d, err := Duration("at", in); err == nil {
			t.Errorf("Duration(%q) = %v", in, d)
		}
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	for in, good := range map[int64]bool{0: false, -1: false, 1: true, 65535: true, 65536: false} {
		if p, err := Port("at", in); (err == nil) != good || good && int64(p) != in {
			t.Errorf("Port(%d) = %d, %v", in, p, err)
		}
	}
}

func TestARulesProblemsAreToldAtItsField(t *testing.T) {
	t.Parallel()
	if err := Rule("network.egress[3]", driver.Rule{Host: "example.com"}); err != nil {
		t.Error(err)
	}
	err := Rule("network.egress[3]", driver.Rule{Host: "not a host"})
	if p := driver.Problems(err); len(p) != 1 || !strings.HasPrefix(p[0].Field, "network.egress[3]") {
		t.Errorf("got %v", err)
	}
}

func TestAnOrderHasEveryDefault(t *testing.T) {
	t.Parallel()
	o := Order(sandbox.Template{Reaper: "r"}, driver.Info{DefaultImage: "i"})
	if o.Image != "i" || o.Lifetime != driver.DefaultLifetime || o.Resources.PIDs == 0 || o.Facts.Reaper != "r" {
		t.Errorf("got %+v", o)
	}
}

func TestAWordBecomesARule(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Bücher.example:443": "xn--bcher-kva.example:443", "*.bücher.example": "*.xn--bcher-kva.example:80,443", "10.0.0.5/8:22": "10.0.0.5/8:22",
		"[2001:db8::1]:443": "[2001:db8::1/128]:443", "::1": "[::1/128]:80,443", "a.example": "a.example:80,443", "bücher.example:80,8443": "xn--bcher-kva.example:80,8443", "[2001:db8::/32]:80,443": "[2001:db8::/32]:80,443",
	} {
		r, err := ParseRule("at", in)
		if r.Ports == nil {
			r.Ports = []uint16{80, 443}
		}
		if err != nil || r.String() != want {
			t.Errorf("ParseRule(%q) = %v, %v", in, r, err)
		}
	}
	for _, in := range []string{"", "xn--a.example:443", "https://bücher.example", "bücher.example:https", "bücher.example:443:1", "[bücher.example]:443", "bücher", "::ffff:0:0/90", "deny bücher.example", "bücher.example 443"} {
		r, err := ParseRule("at", in)
		if err == nil {
			t.Errorf("ParseRule(%q) = %v", in, r)
		}
		for _, p := range driver.Problems(err) {
			if p.Field != "at" || p.Hint == "" || p.Code != driver.CodeInvalid {
				t.Errorf("ParseRule(%q): %v", in, p)
			}
		}
	}
}

// Whatever is written, what comes of it is canonical or an error.
func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"bücher.example:443", "*.例え.テスト", "xn--bcher-kva.example", "１.2.3.4", "a。b:1", "10.0.0.0/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule("at", s)
		if err != nil {
			return
		}
		c, err := driver.Canonical([]driver.Rule{r})
		if err != nil || len(c) != 1 || !isASCII(c[0].String()) {
			t.Fatalf("%q becomes %v, %v", s, c, err)
		}
	})
}
