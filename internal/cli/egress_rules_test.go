package cli

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// goWords are words of Go, which nobody needs to know who writes a list.
var goWords = regexp.MustCompile(`\b(Go|int64|cli|jsonRule|struct|unmarshal)\b`)

// Whatever is given as a list, each entry becomes a rule or is refused with its
// place and the fix; and what the rules are printed as is read as these rules.
func FuzzAllowlist(f *testing.F) {
	for _, s := range []string{
		"", "# nothing", "example.com:80,443 # why\n[2001:db8::/32]:443\r\n", "deny example.com\nexa mple.com", "[2001:db8::1]", "[", "0.\x87",
		`[]`, `{}`, `{"egress":null}`, `{"egress":[{"host":"example.com","ports":[]}]}`, `["example.com:443"]`, `[{"host":1},{"ports":"443"},{"ports":[1.5]},{"hosts":"a"},null,[]]`,
		`{"egress":[{"cidr":"203.0.113.77/24","ports":[443,8443],"why":"x"}],"mode":"proxy","expose":[8080],"learn":true,"name":"n"}`, `{"egress":{}}`, `[{"host":"a.b"}`, `[]x`, `{"expose":[0]}`, `{"mode":7}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseAllowlist(bytes.NewReader(text), "list")
		for _, p := range driver.Problems(driver.Join(err, l.refusal())) {
			quoted := bytes.Contains(text, []byte("Go")) || goWords.Match(text)
			if p.Code != driver.CodeInvalid || p.Field == "" || p.Hint == "" || !quoted && goWords.MatchString(p.Error()) {
				t.Fatalf("%q: %v", text, p)
			}
		}
		if err != nil {
			return
		}
		if len(l.rules) != len(l.places) || len(l.rules) != len(l.entries) || len(l.rules) > l.all || len(l.rules) < l.all && len(l.malformed) == 0 {
			t.Fatalf("%q: %d rules of %d entries, %d malformed", text, len(l.rules), l.all, len(l.malformed))
		}
		for _, m := range l.malformed {
			if m.Kind != egress.KindMalformed || m.Effect != sandbox.Deny || m.Place == "" || m.Index < 0 || m.Index >= l.all {
				t.Fatalf("%q: %+v", text, m)
			}
		}
		canonical, err := driver.Canonical(l.rules)
		if errors.Is(err, driver.CodeInvalid) && len(l.rules) <= driver.MaxRules {
			t.Fatalf("%q: %v", text, err)
		}
		var words strings.Builder
		for _, r := range canonical {
			words.WriteString(r.String() + "\n")
		}
		again, err := parseAllowlist(strings.NewReader(words.String()), "again")
		if err != nil || len(again.malformed) > 0 || len(again.rules) != len(canonical) {
			t.Fatalf("%q is not read back: %v, %v", words.String(), err, again.malformed)
		}
		for i, r := range again.rules {
			if r.String() != canonical[i].String() {
				t.Fatalf("%s is read back as %s", canonical[i], r)
			}
		}
	})
}

// What is said of a canonical rule is told where the entries stand that it was
// made of.
func TestWhatIsSaidOfTheListIsToldAtItsLines(t *testing.T) {
	t.Parallel()
	l, err := parseAllowlist(strings.NewReader("b.example\n\n*.com # why\nB.example.:8443\n203.0.113.0/24\n"), "rules.txt")
	if err != nil || l.refusal() != nil {
		t.Fatal(err, l.refusal())
	}
	finding := func(path string, effect sandbox.Decision) sandbox.Finding {
		return sandbox.Finding{Rule: "SBX-X", Path: path, Effect: effect, Message: "said", Remediation: "do"}
	}
	denied := &driver.Error{Code: driver.CodeDenied, Op: "create", Field: "network.egress[1].host", Err: &sandbox.DeniedError{Verdict: sandbox.Verdict{Findings: []sandbox.Finding{
		finding("network.egress[1].host", sandbox.Deny), finding("network.egress[0]", sandbox.Warn), finding("network.egress[2].host", sandbox.Deny), finding("image", sandbox.Deny), finding("network.egress[9]", sandbox.Failed),
	}}}}
	var got []string
	for _, p := range driver.Problems(l.placed(driver.Join(denied, driver.Unsupported("network.egress[0].cidr", "no", "fix"), driver.Invalid("timeout", "no", "fix")))) {
		got = append(got, p.Error())
	}
	want := []string{
		"rules.txt:3: denied: SBX-X: said (do)", "rules.txt:1, rules.txt:4: denied: SBX-X: said (do)", "image: denied: SBX-X: said (do)", "network.egress[9]: denied: SBX-X: said (do)",
		"rules.txt:5: unsupported: no (fix)", "timeout: invalid: no (fix)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	if l.placed(nil) != nil {
		t.Error("nothing becomes something")
	}
}
