package egress_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestWhatWasAttemptedBecomesRulesCommentedOut(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr
	l, err := egress.Learn([]egress.Denial{
		{Host: "api.example.com", Port: 443, Reason: egress.Host, Count: 3},
		{Host: "API.example.com.", Port: 8443, Reason: egress.Port, Count: 1},
		{Host: "cdn.example.com", Reason: egress.Host, Count: 1}, // only resolved
		{Addr: addr("203.0.113.7"), Port: 22, Reason: egress.Address, Count: 2},
		{Host: "ssh.example.com", Port: 22, Reason: egress.NoRules, Count: 1},
		{Addr: addr("169.254.169.254"), Port: 80, Reason: egress.Protected, Count: 9},
		{Addr: addr("10.0.0.1"), Port: 80, Reason: egress.Address, Count: 1},
		{Host: "ok.example.com", Addr: addr("203.0.113.66"), Port: 443, Reason: egress.Unpinned, Count: 1},
		{Host: "*.evil.example", Port: 443, Reason: egress.Host, Count: 1},
		{Host: "x\"\n} ${file(\"/etc/passwd\")} %{if true}\u202e\x00\xff\a\\", Port: 443, Reason: egress.Malformed, Count: 1},
		{Addr: addr("8.8.8.8"), Port: 53, Reason: egress.NoRules, Count: 1},
		{Host: "transfer.sh", Port: 443, Reason: egress.NoRules, Count: 1},
		{Host: "metadata.example", Port: 80, Reason: egress.NoRules, Count: 2},
		{Host: "metadata.example", Port: 443, Reason: egress.NoRules, Count: 1},
		{Reason: egress.BadHTTP, Count: 1},
	}, 7, func(rules []driver.Rule) (notes []egress.Note, err error) {
		for i, r := range rules {
			switch r.Host {
			case "transfer.sh":
				notes = append(notes, egress.Note{Rule: i, ID: "SBX-NET-008", Text: "it takes \u202e what anybody sends"})
			case "metadata.example":
				notes = append(notes, egress.Note{Rule: i, ID: "SBX-NET-004", Text: "it hands out credentials", Bar: true})
			}
		}
		return notes, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const head = "# Attempted, and denied. The program chose every name and number below, and may\n# have been told to: look up whose they are before you take a line over.\n"
	const leftOut = `# Without a rule to recommend:
#   no target was told: bad-http, 1 attempt
#   10.0.0.1, port 80: address, private, 1 attempt
#   169.254.169.254, port 80: protected, metadata, 9 attempts
#   "*.evil.example", port 443: host, 1 attempt
#   "metadata.example", port 80: no-rules, 2 attempts
#   # SBX-NET-004: it hands out credentials
#   "metadata.example", port 443: no-rules, 1 attempt
#   # SBX-NET-004: it hands out credentials
#   "ok.example.com", 203.0.113.66, port 443: unpinned, 1 attempt
#   "x\"\n} $${file(\"/etc/passwd\")} %%{if true}\u202e\u0000\u00ff\u0007\\", port 443: malformed, 1 attempt
# And 7 attempts more, not told apart.
`
	for format, want := range map[egress.Format]string{egress.FormatHCL: `# egress = [
#   { cidr = "8.8.8.8/32", ports = [53] }, # 1 attempt
#   # resolver: port 53 leads to a name server past the gateway's own, through which data leaves in what is asked for
#   { cidr = "203.0.113.7/32", ports = [22] }, # 2 attempts
#   { host = "api.example.com", ports = [443, 8443] }, # 4 attempts
#   { host = "cdn.example.com", ports = [80, 443] }, # 1 attempt, the port is not seen in this mode
#   { host = "ssh.example.com", ports = [22] }, # 1 attempt
#   # unenforceable: port 22 is SSH, which names no host that could be checked, as TLS and HTTP do
#   { host = "transfer.sh", ports = [443] }, # 1 attempt
#   # SBX-NET-008: it takes ? what anybody sends
# ]
`, egress.FormatRules: `# 8.8.8.8/32:53
#   # 1 attempt
#   # resolver: port 53 leads to a name server past the gateway's own, through which data leaves in what is asked for
# 203.0.113.7/32:22
#   # 2 attempts
# api.example.com:443,8443
#   # 4 attempts
# cdn.example.com:80,443
#   # 1 attempt, the port is not seen in this mode
# ssh.example.com:22
#   # 1 attempt
#   # unenforceable: port 22 is SSH, which names no host that could be checked, as TLS and HTTP do
# transfer.sh:443
#   # 1 attempt
#   # SBX-NET-008: it takes ? what anybody sends
`} {
		if diff := cmp.Diff(head+want+leftOut, l.Text(driver.Transparent, format)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

// nothing says nothing of any rule.
func nothing([]driver.Rule) ([]egress.Note, error) { return nil, nil }

func TestAJudgeThatFailsLeavesNoList(t *testing.T) {
	t.Parallel()
	attempt := []egress.Denial{{Host: "a.example.com", Port: 443, Reason: egress.Host, Count: 1}}
	if _, err := egress.Learn(attempt, 0, func([]driver.Rule) ([]egress.Note, error) { return nil, driver.CodeInternal }); err == nil {
		t.Error("what was not judged is recommended")
	}
}

func TestNothingAttemptedIsNoAllowlist(t *testing.T) {
	t.Parallel()
	for mode, want := range map[driver.Mode]string{driver.Transparent: "# Nothing was attempted.\n", driver.Proxy: "# Nothing was attempted that went to the proxy.\n"} {
		for _, format := range []egress.Format{egress.FormatHCL, egress.FormatRules} {
			l, err := egress.Learn(nil, 0, nothing)
			if got := l.Text(mode, format); err != nil || got != want {
				t.Errorf("got %q, %v", got, err)
			}
		}
	}
	l, err := egress.Learn(nil, 1, nothing)
	if got := l.Text(driver.Proxy, egress.FormatHCL); err != nil || strings.Contains(got, "Nothing") || !strings.Contains(got, "# And 1 attempt more") {
		t.Errorf("got %q, %v", got, err)
	}
}

// What is printed is comments in printable ASCII; without the signs of a
// comment it is the allowlist, and no attempt gets out of its quotes.
func FuzzLearn(f *testing.F) {
	f.Add("api.example.com", []byte{203, 0, 113, 7}, uint16(443), "host")
	f.Add("a\n]}\" ${x} %{ for } \\u0022", []byte{}, uint16(0), "malformed")
	f.Add(`\`, []byte{10, 0, 0, 1}, uint16(80), "no-rules")
	f.Fuzz(func(t *testing.T, host string, ip []byte, port uint16, reason string) {
		a, _ := netip.AddrFromSlice(ip)
		l, err := egress.Learn([]egress.Denial{{Host: host, Addr: a, Port: port, Reason: egress.Reason(reason), Count: 1}, {Host: host, Reason: egress.Host, Count: 2}}, 0, nothing)
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.LeftOut { // reasons are ours, never the program's
			l.LeftOut[i].Reason = egress.Malformed
		}
		for line := range strings.Lines(l.Text(driver.Transparent, egress.FormatRules)) {
			if !strings.HasPrefix(line, "# ") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q is no comment in ASCII", line)
			}
		}
		text := l.Text(driver.Transparent, egress.FormatHCL)
		var bare strings.Builder
		inside := false
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if !strings.HasPrefix(line, "# ") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q is no comment in ASCII", line)
			}
			if inside = inside || line == "# egress = ["; inside {
				bare.WriteString(line[2:] + "\n")
			}
			inside = inside && line != "# ]"
		}
		if len(l.Rules) == 0 {
			return
		}
		file, diags := hclsyntax.ParseConfig([]byte(bare.String()), "learned.hcl", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%v\n%s", diags, text)
		}
		attrs, diags := file.Body.JustAttributes()
		if diags.HasErrors() || len(attrs) != 1 {
			t.Fatalf("%v\n%s", diags, text)
		}
		v, diags := attrs["egress"].Expr.Value(nil)
		if diags.HasErrors() || v.LengthInt() != len(l.Rules) {
			t.Fatalf("%v\n%s", diags, text)
		}
		for i, r := range v.AsValueSlice() {
			name := "host"
			if l.Rules[i].Host == "" {
				name = "cidr"
			}
			if got := r.GetAttr(name); !got.RawEquals(cty.StringVal(l.Rules[i].Target())) {
				t.Fatalf("%#v is not %v", got, l.Rules[i])
			}
		}
	})
}

// A flood of one group of targets hides no other: neither in what is kept, nor
// in what is told of it.
func TestAFloodOfNamesHidesNoAddress(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	deny := func(tally *egress.Tally, d egress.Denial) {
		at = at.Add(time.Millisecond)
		d.First, d.Last = at, at
		tally.Deny(d)
	}
	metadata := egress.Denial{Addr: netip.MustParseAddr("169.254.169.254"), Port: 80, Reason: egress.Protected}
	for name, flood := range map[string]func(i int) egress.Denial{
		"names": func(i int) egress.Denial {
			return egress.Denial{Host: fmt.Sprintf("a%d.example", i), Reason: egress.Host}
		},
		"addresses": func(i int) egress.Denial {
			return egress.Denial{Addr: netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), Port: 443, Reason: egress.Address}
		},
		"private addresses": func(i int) egress.Denial {
			return egress.Denial{Addr: netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), Port: 443, Reason: egress.Protected}
		},
		"datagrams": func(i int) egress.Denial {
			return egress.Denial{Addr: netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), Port: 443, Reason: egress.NotTCP}
		},
		"the host's own": func(i int) egress.Denial {
			return egress.Denial{Addr: netip.MustParseAddr("8.8.8.8"), Port: uint16(i + 1), Reason: egress.Protected}
		},
		"names at addresses": func(i int) egress.Denial {
			return egress.Denial{Host: fmt.Sprintf("a%d.example", i), Addr: netip.MustParseAddr("10.0.0.1"), Reason: egress.Protected}
		},
	} {
		var tally egress.Tally
		const many = 20_000
		for i := range many {
			deny(&tally, flood(i))
		}
		deny(&tally, metadata)
		is := func(d egress.Denial) bool { return d.Addr == metadata.Addr && d.Port == 80 }
		all, other := tally.Denied()
		if !slices.ContainsFunc(all, is) || len(all) > egress.MaxKinds+1 || len(all)+other != many+1 {
			t.Errorf("after %s: %d kept and %d others, metadata among them: %v", name, len(all), other, slices.ContainsFunc(all, is))
		}
		for _, n := range []int{1, 8, 128} {
			told, other := tally.Foremost(n)
			if len(told) != n || len(told)+other != many+1 || !slices.ContainsFunc(told, is) {
				t.Errorf("after %s, %d are told with %d others, metadata among them: %v", name, len(told), other, slices.ContainsFunc(told, is))
			}
		}
		if tally.Total() != many+1 {
			t.Errorf("%d in all", tally.Total())
		}
	}
}

// However much is attempted, a Tally stays small and counts all of it.
func TestTally(t *testing.T) {
	t.Parallel()
	var tally egress.Tally
	start := time.Unix(100, 0)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range egress.MaxKinds {
				tally.Deny(egress.Denial{Host: "h.example", Port: uint16(n + 1), Reason: egress.Host, First: start, Last: start.Add(time.Duration(i) * time.Second)})
			}
		})
	}
	wg.Wait()
	tally.Deny(egress.Denial{Host: strings.Repeat("x", 10_000), Reason: egress.Malformed, Count: 7})
	told, other := tally.Denied()
	if len(told) != egress.MaxKinds || other != 7 || told[0].Count != 4 {
		t.Errorf("%d told, %d others, %+v", len(told), other, told[0])
	}
	var small egress.Tally
	small.Deny(egress.Denial{Host: strings.Repeat("x", 10_000)})
	if told, _ := small.Denied(); len(told[0].Host) != 256 || told[0].Count != 1 {
		t.Errorf("%d bytes of a host are kept", len(told[0].Host))
	}
	if told, other := new(egress.Tally).Denied(); told != nil || other != 0 {
		t.Errorf("nothing denied gives %v, %d", told, other)
	}
}

func TestATallyKeepsAHostAndNotWhatItStoodIn(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 1000) + "evil.example"
	var tally egress.Tally
	tally.Deny(egress.Denial{Host: line[1000:], Reason: egress.Host})
	told, _ := tally.Denied()
	if len(told) != 1 || told[0].Host != "evil.example" || unsafe.StringData(told[0].Host) == unsafe.StringData(line[1000:]) {
		t.Errorf("%+v", told)
	}
}
