package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var noon = time.Unix(1_800_000_000, 0)

func policyOf(t testing.TB, words ...string) *egress.Policy {
	t.Helper()
	var rules []driver.Rule
	for _, w := range words {
		r, err := driver.ParseRule(w)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	p, err := egress.Compile(rules, egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type world struct {
	*Resolver
	pins  *Pins
	tally *egress.Tally
}

func resolverOf(t testing.TB, words ...string) world {
	t.Helper()
	w := world{pins: &Pins{}, tally: &egress.Tally{}}
	w.Resolver = NewResolver(ResolverOptions{Policy: policyOf(t, words...), Pins: w.pins, Denials: w.tally})
	return w
}

// reasons are the denials that were taken note of.
func reasons(tally *egress.Tally) []string {
	var out []string
	told, _ := tally.Denied()
	for _, d := range told {
		out = append(out, fmt.Sprint(d.Host, " ", d.Reason))
	}
	return out
}

func pack(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpack(t testing.TB, b []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return m
}

func question(name string, kind dnsmessage.Type) dnsmessage.Message {
	return dnsmessage.Message{Header: dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
}

func rr(owner string, ttl uint32, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(owner), Class: dnsmessage.ClassINET, TTL: ttl}, Body: body}
}

func a(owner string, ttl uint32, addr string) dnsmessage.Resource {
	return rr(owner, ttl, &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()})
}

func cname(owner string, ttl uint32, to string) dnsmessage.Resource {
	return rr(owner, ttl, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)})
}

// answerTo is an upstream server's answer.
func answerTo(t testing.TB, q *Query, records ...dnsmessage.Resource) dnsmessage.Message {
	t.Helper()
	m := unpack(t, q.Packet)
	m.Response, m.RecursionAvailable = true, true
	m.Answers = records
	return m
}

func addresses(m dnsmessage.Message) []string {
	var out []string
	for _, r := range m.Answers {
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			out = append(out, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			out = append(out, netip.AddrFrom16(b.AAAA).String())
		default:
			out = append(out, r.Header.Type.String())
		}
	}
	return out
}

// What is answered without asking anybody.
func TestAsk(t *testing.T) {
	t.Parallel()
	edit := func(m dnsmessage.Message, f func(*dnsmessage.Message)) dnsmessage.Message { f(&m); return m }
	good := question("example.com.", dnsmessage.TypeA)
	for _, c := range []struct {
		name   string
		in     dnsmessage.Message
		code   dnsmessage.RCode
		asked  bool // upstream
		silent bool // no reply
		denied []string
	}{
		{name: "an allowed name is asked for", in: good, asked: true},
		{name: "one below an allowed zone", in: question("a.b.sub.example.", dnsmessage.TypeA), asked: true},
		{name: "a denied name does not exist (M12)", in: question("evil.example.", dnsmessage.TypeA), code: dnsmessage.RCodeNameError, denied: []string{"evil.example host"}},
		{name: "nor does it for TXT, through which data would leave", in: question("c2VjcmV0.evil.example.", dnsmessage.TypeTXT), code: dnsmessage.RCodeNameError, denied: []string{"c2VjcmV0.evil.example host"}},
		{name: "nor a zone whose subdomains are allowed (M07)", in: question("sub.example.", dnsmessage.TypeA), code: dnsmessage.RCodeNameError, denied: []string{"sub.example host"}},
		{name: "a service name is no host", in: question("_srv._tcp.example.com.", dnsmessage.TypeSRV), code: dnsmessage.RCodeNameError, denied: []string{"_srv._tcp.example.com malformed"}},
		{name: "the root", in: question(".", dnsmessage.TypeNS), code: dnsmessage.RCodeNameError, denied: []string{" malformed"}},
		{name: "a name with a NUL (M03)", in: question("example.com\x00.evil.example.", dnsmessage.TypeA), code: dnsmessage.RCodeNameError, denied: []string{"example.com\x00.evil.example malformed"}},
		{name: "TXT of an allowed name has no data", in: question("example.com.", dnsmessage.TypeTXT), denied: []string{"example.com query-type"}},
		{name: "ANY has none", in: question("example.com.", dnsmessage.TypeALL), denied: []string{"example.com query-type"}},
		{name: "HTTPS has none, and is no attempt", in: question("example.com.", dnsmessage.TypeHTTPS)},
		{name: "SVCB has none, and is no attempt", in: question("example.com.", dnsmessage.TypeSVCB)},
		{name: "IPv6 has none while it is off", in: question("example.com.", dnsmessage.TypeAAAA)},
		{name: "another class has none", in: edit(good, func(m *dnsmessage.Message) {
			m.Questions = []dnsmessage.Question{{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassCHAOS}}
		}), denied: []string{"example.com query-type"}},
		{name: "two questions", in: edit(good, func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), code: dnsmessage.RCodeFormatError},
		{name: "no question", in: edit(good, func(m *dnsmessage.Message) { m.Questions = nil }), code: dnsmessage.RCodeFormatError},
		{name: "a question with answers", in: edit(good, func(m *dnsmessage.Message) { m.Answers = []dnsmessage.Resource{a("example.com.", 1, "203.0.113.1")} }), code: dnsmessage.RCodeFormatError},
		{name: "an update", in: edit(good, func(m *dnsmessage.Message) { m.OpCode = 5 }), code: dnsmessage.RCodeNotImplemented},
		{name: "a response gets none", in: edit(good, func(m *dnsmessage.Message) { m.Response = true }), silent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := resolverOf(t, "example.com", "*.sub.example:8443")
			reply, q := w.Ask(pack(t, c.in), noon)
			if (q != nil) != c.asked || (reply == nil) != (c.asked || c.silent) {
				t.Fatalf("reply %x, query %v", reply, q)
			}
			if diff := cmp.Diff(c.denied, reasons(w.tally)); diff != "" {
				t.Error(diff)
			}
			if reply == nil {
				return
			}
			m := unpack(t, reply)
			if m.RCode != c.code || !m.Response || m.ID != 77 || len(m.Answers)+len(m.Authorities)+len(m.Additionals) > 0 {
				t.Errorf("replied %+v, want %v", m, c.code)
			}
		})
	}
}

func TestWithoutRulesNoNameResolves(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*egress.Policy{"no rules (M34)": policyOf(t), "no policy at all (M34)": nil, "only a CIDR (M34)": policyOf(t, "0.0.0.0/0")} {
		r := NewResolver(ResolverOptions{Policy: p, Pins: &Pins{}, Denials: &egress.Tally{}})
		reply, q := r.Ask(pack(t, question("example.com.", dnsmessage.TypeA)), noon)
		if q != nil || unpack(t, reply).RCode != dnsmessage.RCodeNameError {
			t.Errorf("%s: %x, %v", name, reply, q)
		}
	}
}

func TestWhatIsNoPacketGetsNoAnswer(t *testing.T) {
	t.Parallel()
	w := resolverOf(t, "example.com")
	for _, in := range [][]byte{nil, make([]byte, 11), make([]byte, maxQuery+1)} {
		if reply, q := w.Ask(in, noon); reply != nil || q != nil {
			t.Errorf("%d bytes get %x, %v", len(in), reply, q)
		}
	}
}

// No bit that the program chose goes upstream but the name, in lower case, and
// A or AAAA: not the id, not a flag, not an option, not how it was spelt.
func TestTheQueryIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := resolverOf(t, "example.com")
	plain := question("example.com.", dnsmessage.TypeA)
	odd := question("eXaMpLe.CoM.", dnsmessage.TypeA)
	odd.ID, odd.RecursionDesired, odd.AuthenticData, odd.CheckingDisabled = 1, false, true, true
	odd.Additionals = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: 4096},
		Body: &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: 65001, Data: []byte("a secret")}}}}}
	_, first := w.Ask(pack(t, plain), noon)
	_, second := w.Ask(append(pack(t, odd), "and more"...), noon)
	if first == nil || second == nil {
		t.Fatal("not asked")
	}
	if diff := cmp.Diff(first.Packet[2:], second.Packet[2:]); diff != "" {
		t.Errorf("two spellings of one question differ upstream:\n%s", diff)
	}
	ids := map[uint16]bool{}
	for range 64 {
		q, err := newQuery("example.com", asked{question: plain.Questions[0]})
		if err != nil {
			t.Fatal(err)
		}
		ids[q.id] = true
	}
	if len(ids) < 32 {
		t.Errorf("64 queries have %d ids", len(ids))
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	const ex = "example.com."
	loop := []dnsmessage.Resource{cname(ex, 9, "a.example."), cname("a.example.", 9, "b.example."), cname("b.example.", 9, ex)}
	for _, c := range []struct {
		name    string
		rules   []string
		records []dnsmessage.Resource
		code    dnsmessage.RCode
		want    []string
		ttl     uint32
		denied  []string
	}{
		{name: "an address", records: []dnsmessage.Resource{a(ex, 60, "203.0.113.1")}, want: []string{"203.0.113.1"}, ttl: 60},
		{name: "two, one of them twice", records: []dnsmessage.Resource{a(ex, 60, "203.0.113.1"), a(ex, 30, "203.0.113.2"), a(ex, 90, "203.0.113.1")}, want: []string{"203.0.113.1", "203.0.113.2"}, ttl: 30},
		{name: "a lifetime of nothing is made one (M29)", records: []dnsmessage.Resource{a(ex, 0, "203.0.113.1")}, want: []string{"203.0.113.1"}, ttl: 5},
		{name: "a lifetime of years is cut (M29)", records: []dnsmessage.Resource{a(ex, 1<<31-1, "203.0.113.1")}, want: []string{"203.0.113.1"}, ttl: 300},
		{name: "aliases are followed and not shown", records: []dnsmessage.Resource{cname(ex, 50, "A.edge.example."), a("b.edge.example.", 40, "203.0.113.1"), cname("a.EDGE.example.", 45, "b.edge.example.")}, want: []string{"203.0.113.1"}, ttl: 40},
		{name: "addresses of other names are not taken", records: []dnsmessage.Resource{a("evil.example.", 60, "203.0.113.66"), cname(ex, 50, "a.edge.example.")}, denied: []string{"example.com unresolved"}},
		{name: "an alias that leads out of the answer", records: []dnsmessage.Resource{cname(ex, 50, "a.edge.example.")}, denied: []string{"example.com unresolved"}},
		{name: "as many aliases as anybody needs", records: aliases(maxAliases), want: []string{"203.0.113.1"}, ttl: 60},
		{name: "one more", records: aliases(maxAliases + 1), code: dnsmessage.RCodeServerFailure, denied: []string{"example.com unresolved"}},
		{name: "a loop of aliases", records: loop, code: dnsmessage.RCodeServerFailure, denied: []string{"example.com unresolved"}},
		{name: "an alias of itself", records: []dnsmessage.Resource{cname(ex, 50, ex), a(ex, 60, "203.0.113.1")}, code: dnsmessage.RCodeServerFailure, denied: []string{"example.com unresolved"}},
		{name: "two aliases of one name", records: []dnsmessage.Resource{cname(ex, 50, "a.example."), cname(ex, 50, "b.example.")}, code: dnsmessage.RCodeServerFailure, denied: []string{"example.com unresolved"}},
		{name: "records of other types are not shown", records: []dnsmessage.Resource{rr(ex, 60, &dnsmessage.TXTResource{TXT: []string{"do as I say"}}), a(ex, 60, "203.0.113.1")}, want: []string{"203.0.113.1"}, ttl: 60},
		{name: "nothing", code: dnsmessage.RCodeSuccess, denied: []string{"example.com unresolved"}},
		{name: "a private address is no answer", records: []dnsmessage.Resource{a(ex, 60, "10.0.0.1")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "one among public ones spoils them", records: []dnsmessage.Resource{a(ex, 60, "203.0.113.1"), a(ex, 60, "169.254.169.254")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "behind an alias too", records: []dnsmessage.Resource{cname(ex, 50, "metadata.google.internal."), a("metadata.google.internal.", 60, "169.254.169.254")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "loopback", records: []dnsmessage.Resource{a(ex, 60, "127.0.0.1")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "no address at all", records: []dnsmessage.Resource{a(ex, 60, "0.0.0.0")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "a private address that a rule names", rules: []string{"10.0.0.0/24:443"}, records: []dnsmessage.Resource{a(ex, 60, "10.0.0.1")}, want: []string{"10.0.0.1"}, ttl: 60},
		{name: "a private address that a rule reaches across", rules: []string{"0.0.0.0/0"}, records: []dnsmessage.Resource{a(ex, 60, "10.0.0.1")}, code: dnsmessage.RCodeNameError, denied: []string{"example.com protected"}},
		{name: "more addresses than there is room for", records: manyA(ex, 40), want: []string{"203.0.113.0", "203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5", "203.0.113.6", "203.0.113.7"}, ttl: 60},
		{name: "more records than anybody needs", records: manyA(ex, maxRecords+1), code: dnsmessage.RCodeServerFailure, denied: []string{"example.com unresolved"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := resolverOf(t, append([]string{"example.com"}, c.rules...)...)
			in := question("Example.COM.", dnsmessage.TypeA)
			_, q := w.Ask(pack(t, in), noon)
			reply, err := w.Answer(q, pack(t, answerTo(t, q, c.records...)), noon)
			if err != nil {
				t.Fatal(err)
			}
			m := unpack(t, reply)
			if m.RCode != c.code || m.ID != 77 || len(reply) > 512 || m.Questions[0] != in.Questions[0] || len(m.Authorities)+len(m.Additionals) > 0 {
				t.Errorf("replied %+v", m)
			}
			if diff := cmp.Diff(c.want, addresses(m)); diff != "" {
				t.Error(diff)
			}
			for _, r := range m.Answers {
				if r.Header.TTL != c.ttl || r.Header.Name != in.Questions[0].Name {
					t.Errorf("%v, want a lifetime of %d", r.Header, c.ttl)
				}
			}
			for _, s := range c.want {
				if !w.pins.Has("example.com", netip.MustParseAddr(s), noon) {
					t.Errorf("%s was told and not pinned", s)
				}
			}
			if w.pins.Has("example.com", netip.MustParseAddr("169.254.169.254"), noon) || w.pins.Has("example.com", netip.MustParseAddr("203.0.113.66"), noon) {
				t.Error("an address was pinned that was not told (M10)")
			}
			if diff := cmp.Diff(c.denied, reasons(w.tally)); diff != "" {
				t.Error(diff)
			}
			// What was told is told again without asking.
			if again, _ := w.Ask(pack(t, in), noon.Add(time.Second)); c.code == dnsmessage.RCodeSuccess {
				if diff := cmp.Diff(c.want, addresses(unpack(t, again))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// aliases is a chain of n aliases of example.com to an address.
func aliases(n int) []dnsmessage.Resource {
	at := "example.com."
	var out []dnsmessage.Resource
	for i := range n {
		next := fmt.Sprintf("a%d.example.", i)
		out = append(out, cname(at, 60, next))
		at = next
	}
	return append(out, a(at, 60, "203.0.113.1"))
}

func manyA(owner string, n int) []dnsmessage.Resource {
	var out []dnsmessage.Resource
	for i := range n {
		out = append(out, a(owner, 60, fmt.Sprintf("203.0.113.%d", i)))
	}
	return out
}

func TestOnlyTheAnswerIsTakenForIt(t *testing.T) {
	t.Parallel()
	w := resolverOf(t, "example.com")
	_, q := w.Ask(pack(t, question("example.com.", dnsmessage.TypeA)), noon)
	for name, f := range map[string]func(*dnsmessage.Message){
		"another id":       func(m *dnsmessage.Message) { m.ID++ },
		"a question":       func(m *dnsmessage.Message) { m.Response = false },
		"another name":     func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("evil.example.") },
		"another type":     func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeAAAA },
		"another class":    func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS },
		"no question":      func(m *dnsmessage.Message) { m.Questions = nil },
		"two questions":    func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) },
		"an answer of old": func(m *dnsmessage.Message) { m.OpCode = 2 },
	} {
		m := answerTo(t, q, a("example.com.", 60, "203.0.113.1"))
		f(&m)
		if reply, err := w.Answer(q, pack(t, m), noon); !errors.Is(err, ErrNotTheAnswer) || reply != nil {
			t.Errorf("%s: %x, %v", name, reply, err)
		}
	}
	if _, err := w.Answer(q, []byte("x"), noon); !errors.Is(err, ErrNotTheAnswer) {
		t.Errorf("no packet: %v", err)
	}
	m := answerTo(t, q, a("example.com.", 60, "203.0.113.1"))
	m.Truncated = true
	if _, err := w.Answer(q, pack(t, m), noon); !errors.Is(err, ErrTruncated) {
		t.Errorf("a truncated answer: %v", err)
	}
	for code, want := range map[dnsmessage.RCode]dnsmessage.RCode{dnsmessage.RCodeNameError: dnsmessage.RCodeNameError, dnsmessage.RCodeRefused: dnsmessage.RCodeServerFailure} {
		m := answerTo(t, q)
		m.RCode = code
		if reply, err := w.Answer(q, pack(t, m), noon); err != nil || unpack(t, reply).RCode != want {
			t.Errorf("%v becomes %x, %v", code, reply, err)
		}
	}
	if told := reasons(w.tally); !slices.Equal(told, []string{"example.com unresolved"}) {
		t.Errorf("told %q", told)
	}
	if got := unpack(t, q.Fail()); got.RCode != dnsmessage.RCodeServerFailure || got.ID != 77 {
		t.Errorf("failing gives %+v", got)
	}
	before := w.tally.Total()
	if got := unpack(t, w.Unanswered(q, noon)); got.RCode != dnsmessage.RCodeServerFailure || got.ID != 77 || w.tally.Total() != before+1 {
		t.Errorf("an upstream server that is silent gives %+v, and %d denials after %d", got, w.tally.Total(), before)
	}
}

func TestIPv6IsAnsweredWhenItIsOn(t *testing.T) {
	t.Parallel()
	w := resolverOf(t, "example.com")
	w.opts.IPv6 = true
	for addr, code := range map[string]dnsmessage.RCode{"2606:4700::1": 0, "fd00:ec2::254": dnsmessage.RCodeNameError, "::ffff:10.0.0.1": dnsmessage.RCodeNameError, "64:ff9b::a9fe:a9fe": dnsmessage.RCodeNameError} {
		w.opts.Pins = &Pins{}
		_, q := w.Ask(pack(t, question("example.com.", dnsmessage.TypeAAAA)), noon)
		reply, err := w.Answer(q, pack(t, answerTo(t, q, rr("example.com.", 60, &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(addr).As16()}))), noon)
		if err != nil {
			t.Fatal(err)
		}
		m := unpack(t, reply)
		if m.RCode != code || (len(m.Answers) == 1) != (code == 0) {
			t.Errorf("%s: %+v", addr, m)
		}
	}
}

// A tunnel through names of an allowed zone is slow.
func TestQueriesUpstreamAreRationed(t *testing.T) {
	t.Parallel()
	w := resolverOf(t, "*.example.com")
	ask := func(n int, at time.Time) (asked int) {
		for i := range n {
			reply, q := w.Ask(pack(t, question(fmt.Sprintf("x%d.example.com.", i), dnsmessage.TypeA)), at)
			if q != nil {
				asked++
			} else if unpack(t, reply).RCode != dnsmessage.RCodeServerFailure {
				t.Fatalf("replied %x", reply)
			}
		}
		return asked
	}
	if got := ask(300, noon); got != 100 {
		t.Errorf("at once, %d are asked", got)
	}
	if got := ask(300, noon.Add(2*time.Second)); got != 40 {
		t.Errorf("after two seconds, %d more", got)
	}
	if got := ask(300, noon.Add(-time.Hour)); got != 0 {
		t.Errorf("a clock that goes back gives %d", got)
	}
	if got := ask(300, noon.Add(time.Hour)); got != 100 {
		t.Errorf("after an hour, %d more", got)
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	t.Run("an address is good for its lifetime and a grace, and not for ever (M29)", func(t *testing.T) {
		t.Parallel()
		var p Pins
		if got := p.Pin("a.example", false, []netip.Addr{addr(1)}, 24*time.Hour, noon); got != MaxTTL {
			t.Errorf("pinned for %v", got)
		}
		for after, want := range map[time.Duration]bool{0: true, MaxTTL: true, MaxTTL + Grace - 1: true, MaxTTL + Grace: false} {
			if got := p.Has("a.example", addr(1), noon.Add(after)); got != want {
				t.Errorf("after %v: %v", after, got)
			}
		}
		if _, _, ok := p.Answer("a.example", false, noon.Add(MaxTTL)); ok {
			t.Error("an answer is given after its end")
		}
		if _, _, ok := p.Answer("a.example", true, noon); ok {
			t.Error("an answer of the other family is given")
		}
	})
	t.Run("an address is pinned for its name alone (M10)", func(t *testing.T) {
		t.Parallel()
		var p Pins
		p.Pin("a.example", false, []netip.Addr{addr(1)}, 0, noon)
		if p.Has("b.example", addr(1), noon) || p.Has("a.example", addr(2), noon) {
			t.Error("another one is good too")
		}
	})
	t.Run("an earlier answer's address stays good beside a later one's", func(t *testing.T) {
		t.Parallel()
		var p Pins
		p.Pin("a.example", false, []netip.Addr{addr(1)}, 10*time.Second, noon)
		p.Pin("a.example", false, []netip.Addr{addr(2)}, 10*time.Second, noon.Add(11*time.Second))
		if at := noon.Add(12 * time.Second); !p.Has("a.example", addr(1), at) || !p.Has("a.example", addr(2), at) {
			t.Error("one of them is gone")
		}
		p.Pin("a.example", false, []netip.Addr{addr(2)}, MaxTTL, noon.Add(12*time.Second))
		if !p.Has("a.example", addr(2), noon.Add(MaxTTL)) {
			t.Error("a pin is not renewed")
		}
	})
	t.Run("however many are resolved, memory is bounded", func(t *testing.T) {
		t.Parallel()
		var p Pins
		for i := range 3 * MaxNames {
			p.Pin(fmt.Sprintf("n%d.example", i), false, []netip.Addr{addr(i)}, MinTTL, noon.Add(time.Duration(i)*time.Millisecond))
		}
		if len(p.names) != MaxNames {
			t.Errorf("%d names are pinned", len(p.names))
		}
		if !p.Has(fmt.Sprintf("n%d.example", 3*MaxNames-1), addr(3*MaxNames-1), noon) {
			t.Error("the newest is gone")
		}
		for i := range 200 {
			p.Pin("one.example", false, []netip.Addr{addr(i)}, MinTTL, noon.Add(time.Duration(i)*time.Millisecond))
		}
		if n := len(p.names["one.example"].addrs); n != MaxAddrs || !p.Has("one.example", addr(199), noon) || p.Has("one.example", addr(0), noon) {
			t.Errorf("%d addresses are pinned, or not the newest", n)
		}
		p.Pin("later.example", false, nil, 0, noon.Add(time.Hour))
		if len(p.names) != 1 {
			t.Errorf("%d names are left after an hour", len(p.names))
		}
	})
}

func FuzzAsk(f *testing.F) {
	f.Add(pack(f, question("example.com.", dnsmessage.TypeA)))
	f.Add(pack(f, question("A.sub.example.", dnsmessage.TypeAAAA)))
	f.Add(pack(f, question("evil.example.", dnsmessage.TypeTXT)))
	f.Add([]byte("\x00\x4d\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, in []byte) {
		w := resolverOf(t, "example.com", "*.sub.example")
		reply, q := w.Ask(in, noon)
		if q != nil {
			m := unpack(t, q.Packet)
			name := m.Questions[0].Name.String()
			if name != "example.com." && !strings.HasSuffix(name, ".sub.example.") || name != strings.ToLower(name) ||
				len(m.Questions) != 1 || len(m.Answers)+len(m.Authorities)+len(m.Additionals) != 0 || m.Questions[0].Type != dnsmessage.TypeA {
				t.Fatalf("%x goes upstream", q.Packet)
			}
		}
		if reply != nil && (len(reply) > 512 || !unpack(t, reply).Response) {
			t.Fatalf("replied %x", reply)
		}
	})
}

// Whatever an upstream server answers, only public addresses are told, and
// those that are told are pinned.
func FuzzAnswer(f *testing.F) {
	w := resolverOf(f, "example.com")
	_, q := w.Ask(pack(f, question("example.com.", dnsmessage.TypeA)), noon)
	for _, r := range [][]dnsmessage.Resource{{a("example.com.", 60, "203.0.113.1")}, {cname("example.com.", 60, "b.example."), a("b.example.", 60, "10.0.0.1")}} {
		f.Add(pack(f, answerTo(f, q, r...))[2:])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		w := resolverOf(t, "example.com")
		_, q := w.Ask(pack(t, question("example.com.", dnsmessage.TypeA)), noon)
		reply, err := w.Answer(q, append([]byte{byte(q.id >> 8), byte(q.id)}, in...), noon)
		if err != nil {
			return
		}
		for _, s := range addresses(unpack(t, reply)) {
			addr, err := netip.ParseAddr(s)
			if err != nil || driver.Classify(addr) != driver.ClassPublic || !w.pins.Has("example.com", addr, noon) {
				t.Fatalf("%s is told", s)
			}
		}
	})
}
