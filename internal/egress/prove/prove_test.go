package prove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func testWorld() *prover {
	at := ranges[0]
	p := &prover{}
	p.range6 = newRange6()
	p.env = probe.Env{World: host(at, routerHost), Allowed: host(at, allowedHost), CIDR: host(at, cidrHost), Next: host(at, nextHost), Names: host(at, namesHost),
		Private: probe.Specials[3], HostPort: 47808, Near: netip.MustParseAddr("172.31.0.2"), Engine: netip.MustParseAddr("172.31.0.1")}
	return p
}

func TestEveryModeHasSixtyAttemptsWithSignsAndAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, m := range Modes() {
		ts, err := testWorld().trials(m)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(ts.all, ts.again, ts.canaries, ts.last)
		if n := len(ts.all) - len(Controls(m)); n < enough {
			t.Errorf("%s has %d attempts", m, n)
		}
		signs, addrs := map[string]bool{}, map[netip.Addr]bool{}
		for _, a := range all {
			if len(a.env.Sign) != 16 || signs[a.env.Sign] || addrs[a.env.Denied] || addrs[a.env.Denied6] {
				t.Errorf("%s: %q at %s and %s", a.Name, a.env.Sign, a.env.Denied, a.env.Denied6)
			}
			signs[a.env.Sign], addrs[a.env.Denied], addrs[a.env.Denied6] = true, true, true
			if got := a.env.Lookup(a.env.Sign + ".x." + probe.Evil); got != nil {
				t.Errorf("a name leads to %v", got)
			}
		}
	}
}

// Everything that is counted was shown by a test with a mutant; the table holds
// nothing that is not tried.
func TestTheTableIsOfTheCatalogue(t *testing.T) {
	t.Parallel()
	table, err := readShown()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Modes() {
		counted := 0
		for _, a := range Catalogue() {
			if table[m][a.Name] != "" && !a.In(m) {
				t.Errorf("%s: %s is not tried", m, a.Name)
			}
			if table[m][a.Name] != "" {
				counted++
			}
		}
		if counted != len(table[m]) {
			t.Errorf("%s: %d of %d shown are in the catalogue", m, counted, len(table[m]))
		}
		if counted < enough {
			t.Errorf("%s: %d attempts are shown to come through", m, counted)
		}
	}
}

func TestWhatAnAttemptCountsFor(t *testing.T) {
	t.Parallel()
	p := testWorld()
	p.shown = shown{Deny: {"tcp-ssh": "no other way"}}
	for name, c := range map[string]struct {
		attempt string
		control Outcome
		seen    []string
		want    Outcome
	}{
		"nothing came, and could have":                       {"tcp-ssh", Open, nil, Closed},
		"nothing came that was tried where nothing holds":    {"tcp-ssh", NotTried, nil, NotTried},
		"something came":                                     {"tcp-ssh", Open, []string{"it"}, Open},
		"nothing came, and never does":                       {"tcp-ssh", NotApplicable, nil, NotApplicable},
		"no test has shown that it can":                      {"tcp-smtp", Open, nil, NotApplicable},
		"what came is never explained away by the control":   {"tcp-ssh", NotApplicable, []string{"it"}, Open},
		"what came is never explained away by what is shown": {"tcp-smtp", Open, []string{"it"}, Open},
	} {
		tr := &trial{attempt: Attempt{Name: c.attempt}}
		tr.Name, tr.Control, tr.Seen = c.attempt, c.control, c.seen
		p.judge(Deny, tr)
		if tr.Outcome != c.want || (tr.Why != "") != (c.want == NotApplicable || c.want == NotTried) {
			t.Errorf("%s: %s (%s), want %s", name, tr.Outcome, tr.Why, c.want)
		}
	}
}

func TestWhatTheProbeDidNotFinishIsNotTried(t *testing.T) {
	t.Parallel()
	p := testWorld()
	p.shown = shown{Deny: {"tcp-ssh": "no other way"}}
	for name, c := range map[string]struct {
		unfinished, control bool
		seen                []string
		want                Outcome
	}{
		"an attempt":                         {true, false, nil, NotTried},
		"one that failed, as it should":      {false, false, nil, Closed},
		"one that came before it was killed": {true, false, []string{"it"}, Open},
		"a control":                          {true, true, nil, NotTried},
		"a control that failed":              {false, true, nil, Closed},
		"a control that came":                {true, true, []string{"it"}, Open},
	} {
		tr := &trial{attempt: Attempt{Name: "tcp-ssh"}, unfinished: c.unfinished, control: c.control}
		tr.Name, tr.Control, tr.Seen, tr.Expected = "tcp-ssh", Open, c.seen, Closed
		p.judge(Deny, tr)
		if tr.Outcome != c.want {
			t.Errorf("%s: %s (%s), want %s", name, tr.Outcome, tr.Why, c.want)
		}
		e := Evidence{Only: []string{"tcp-ssh"}, Modes: []Section{{Mode: Deny, Attempts: []Finding{tr.Finding}}}}
		if got := e.Problems(); (len(got) == 0) != (c.want == Closed) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAnAttemptThatThereIsNotIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Options{Only: []string{"tcp-ssh", "udp-qick"}})
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != driver.CodeInvalid || e.Field != "only" || !strings.Contains(e.Hint, "udp-quic") {
		t.Errorf("%v", err)
	}
}

func TestAPartialRunIsNoProofOfMore(t *testing.T) {
	t.Parallel()
	closed := func(name string) Finding { return Finding{Name: name, Outcome: Closed, Expected: Closed} }
	e := Evidence{Only: []string{"tcp-ssh", "proxy-nul"}, Modes: []Section{{Mode: Deny, Attempts: []Finding{closed("tcp-ssh")}}}}
	if got := strings.Join(e.Problems(), "; "); got != "proxy-nul was not tried: it is for another mode" {
		t.Errorf("%q", got)
	}
	e.Only = e.Only[:1]
	if e.settle(); !e.Proven || len(e.Wrong) != 0 || e.Modes[0].Counts[Closed] != 1 {
		t.Errorf("%+v", e)
	}
	e.Modes[0].Attempts[0].Outcome = Open
	if e.settle(); e.Proven || len(e.Wrong) == 0 || e.Modes[0].Counts[Open] != 1 {
		t.Errorf("%+v", e)
	}
	e.Modes[0].Attempts[0].Outcome = Closed
	e.settle()
	var b strings.Builder
	e.Text(&b)
	text, err := json.Marshal(e)
	if err != nil || !strings.Contains(b.String(), "no proof but of tcp-ssh") || !strings.Contains(string(text), `"only":["tcp-ssh"]`) {
		t.Errorf("%v: %s\n%s", err, b.String(), text)
	}
	e.Modes = append(e.Modes, Section{Mode: Proxy})
	if got := strings.Join(e.Problems(), "; "); got != "proxy: nothing was tried" {
		t.Errorf("%q", got)
	}
	e.Modes[1].Attempts = []Finding{closed("tcp-ssh"), {Name: "x", Outcome: NotApplicable, Expected: Closed}}
	if got := strings.Join(e.Problems(), "; "); got != "proxy: only 1 of the 2 attempts that were asked for can fail here" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsNoProof(t *testing.T) {
	t.Parallel()
	good := Section{Mode: Deny}
	for range enough {
		good.Attempts = append(good.Attempts, Finding{Name: "a", Outcome: Closed, Expected: Closed})
	}
	with := func(f func(*Section)) Section {
		s := good
		s.Attempts = append([]Finding(nil), good.Attempts...)
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		modes []Section
		says  string // "" is a proof
	}{
		"all closed":                        {[]Section{good}, ""},
		"nothing":                           {nil, "nothing was tried"},
		"one open":                          {[]Section{with(func(s *Section) { s.Attempts[3].Outcome = Open })}, "a is open, expected closed"},
		"a closed control":                  {[]Section{with(func(s *Section) { s.Controls = []Finding{{Name: "c", Outcome: Closed, Expected: Open}} })}, "c is closed, expected open"},
		"a canary that went":                {[]Section{with(func(s *Section) { s.Controls = []Finding{{Name: "c", Outcome: Open, After: Closed, Expected: Open}} })}, "c was open, and is closed after the attempts"},
		"a canary that was not asked again": {[]Section{with(func(s *Section) { s.Controls = []Finding{{Name: "c", Outcome: Open, Expected: Open}} })}, "c was open, and is "},
		"a canary that stayed":              {[]Section{with(func(s *Section) { s.Controls = []Finding{{Name: "c", Outcome: Open, After: Open, Expected: Open}} })}, ""},
		"a canary that never was": {[]Section{with(func(s *Section) {
			s.Controls = []Finding{{Name: "c", Outcome: NotApplicable, After: NotApplicable, Expected: Open}}
		})}, ""},
		"a stray":           {[]Section{with(func(s *Section) { s.Stray = []string{"udp to x"} })}, "nobody's: udp to x"},
		"too few that fail": {[]Section{with(func(s *Section) { s.Attempts[0].Outcome = NotApplicable })}, "only 59 attempts can fail here"},
		"few":               {[]Section{with(func(s *Section) { s.Attempts = s.Attempts[:2] })}, "only 2 attempts can fail here"},
		"one not tried":     {[]Section{with(func(s *Section) { s.Attempts[3].Outcome = NotTried })}, "a is not tried, expected closed"},
		"an empty mode":     {[]Section{{Mode: Proxy}}, "proxy: nothing was tried"},
		"one beside others that cannot fail": {[]Section{with(func(s *Section) {
			s.Attempts = append(s.Attempts, Finding{Outcome: NotApplicable, Expected: Closed})
		})}, ""},
	} {
		got := strings.Join(Evidence{Modes: c.modes}.Problems(), "; ")
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhatCameIsWhose(t *testing.T) {
	t.Parallel()
	p := testWorld()
	ts, err := p.trials(Transparent)
	if err != nil {
		t.Fatal(err)
	}
	all := ts.all
	byName := map[string]*trial{}
	for _, a := range all {
		byName[a.Name] = a
	}
	ssh, engine := byName["tcp-ssh"], byName["engine-host"]
	for name, c := range map[string]struct {
		event   probe.Event
		whose   string
		allowed bool
	}{
		"a packet to its address":        {probe.Event{Proto: "tcp", To: ssh.env.Denied, Port: 22}, "tcp-ssh", false},
		"its sign anywhere":              {probe.Event{Proto: "udp", To: p.env.Names, Port: 53, Payload: []byte("xx" + ssh.env.Sign)}, "tcp-ssh", true},
		"its sign in capitals":           {probe.Event{Proto: "udp", Payload: []byte(strings.ToUpper(ssh.env.Sign))}, "tcp-ssh", false},
		"the engine's host":              {probe.Event{Proto: "tcp", To: engine.env.Engine, Port: p.env.HostPort}, "engine-host", false},
		"a name in capitals":             {probe.Event{Proto: "udp", To: p.env.Names, Port: 53, Payload: []byte("\x07ALLOWED\x05prove")}, "dns-case", true},
		"a name as resolvers ask":        {probe.Event{Proto: "udp", To: p.env.Names, Port: 53, Payload: []byte("\x07allowed\x05prove")}, "", true},
		"the allowed host":               {probe.Event{Proto: "tcp", To: p.env.Allowed, Port: 443}, "", true},
		"another port of it":             {probe.Event{Proto: "tcp", To: p.env.Allowed, Port: 22}, "", false},
		"another protocol to it":         {probe.Event{Proto: "udp", To: p.env.Allowed, Port: 443}, "", false},
		"the allowed range":              {probe.Event{Proto: "tcp", To: p.env.CIDR, Port: probe.OpenPort}, "", true},
		"neighbours who find each other": {probe.Event{Proto: "icmp6", To: netip.MustParseAddr("ff02::2")}, "", true},
		"a metadata service":             {probe.Event{Proto: "tcp", To: probe.Specials[0], Port: 80}, "", false},
	} {
		seen, rest := sort([]probe.Event{c.event}, all)
		switch {
		case c.whose != "" && (len(seen) != 1 || len(seen[byName[c.whose]]) != 1 || len(rest) != 0):
			t.Errorf("%s: %v, %v", name, seen, rest)
		case c.whose == "" && (len(seen) != 0 || len(rest) != 1):
			t.Errorf("%s: %v, %v", name, seen, rest)
		}
		if got := p.allowed(Transparent, c.event); got != c.allowed {
			t.Errorf("%s: allowed is %v", name, got)
		}
		if p.allowed(Deny, c.event) && !c.event.To.IsMulticast() {
			t.Errorf("%s: it is allowed without rules", name)
		}
	}
}

func TestTheRulesAreCanonicalAndHaveThePolicysDigest(t *testing.T) {
	t.Parallel()
	p := testWorld()
	digests := map[string]bool{}
	for _, m := range Modes() {
		r, n, err := section(m, p.env)
		if err != nil || (m == Deny) != (len(n.Egress) == 0) || len(r.Policy) != len(n.Egress) {
			t.Fatalf("%s: %v, %v", m, r, err)
		}
		// As a sandboxio_network_policy of these rules has it in plan and state.
		if want := egress.Digest(n); r.Digest != want {
			t.Errorf("%s: %s, want %s", m, r.Digest, want)
		}
		digests[r.Digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("%d digests", len(digests))
	}
}

func TestAnotherProbeThanTheReleasesIsRefused(t *testing.T) {
	own := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(own, []byte("tries nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("tries nothing"))
	ours := "sha256:" + hex.EncodeToString(sum[:])
	opened := errors.New("it was taken")
	open := func(context.Context, Site) (driver.Backend, error) { return nil, opened }
	for name, c := range map[string]struct {
		release string
		taken   bool
		text    string
	}{
		"the release's": {ours, true, "this release's"},
		"another":       {"sha256:" + strings.Repeat("ab", 32), false, ""},
		"any, by a program that was built from source": {"", true, "compared with nothing"},
	} {
		ReleaseDigest = c.release
		e, err := Run(t.Context(), Options{Probe: own, Open: open})
		ReleaseDigest = ""
		var b strings.Builder
		e.Text(&b)
		var de *driver.Error
		switch {
		case c.taken && (!errors.Is(err, opened) || e.Probe != ours || e.Pinned != (c.release != "") || !strings.Contains(b.String(), c.text)):
			t.Errorf("%s: %v: %s", name, err, b.String())
		case !c.taken && (!errors.As(err, &de) || de.Field != "probe" || !strings.Contains(err.Error(), ours)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
