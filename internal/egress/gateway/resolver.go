package gateway

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Resolver answers what a program asks of DNS. It moves no packets: its caller
// hands them in, and asks the upstream server what it is told to ask.
//
// A name that no rule names does not exist (NXDOMAIN: told REFUSED, programs
// would turn to another server). Of one that a rule names, there are only
// addresses: every other type has no data. The upstream server is asked a
// question made anew, of a name in lower case and nothing else, so that no bit
// that a program can choose leaves but the name; its answer is made anew too.
// A Resolver is safe for concurrent use.
type Resolver struct {
	opts   ResolverOptions
	bucket bucket
}

// ResolverOptions are what a Resolver is made of.
type ResolverOptions struct {
	Policy  *egress.Policy
	Pins    *Pins
	Denials egress.Denials
	IPv6    bool // answer questions for IPv6 addresses; else there are none
	// PerSecond and Burst bound what the upstream server is asked; 0 = 20 and
	// 100. What was resolved already costs nothing.
	PerSecond, Burst int
}

// NewResolver makes a Resolver; Policy, Pins and Denials are required.
func NewResolver(opts ResolverOptions) *Resolver {
	if opts.PerSecond == 0 {
		opts.PerSecond = 20
	}
	if opts.Burst == 0 {
		opts.Burst = 100
	}
	return &Resolver{opts: opts, bucket: bucket{rate: float64(opts.PerSecond), size: float64(opts.Burst)}}
}

// maxTold is how many addresses an answer has, so that it fits 512 bytes with
// the longest name there is.
const maxTold = 8

// Query is a question to the upstream server on behalf of a program.
type Query struct {
	Packet   []byte // to be sent
	id       uint16
	question dnsmessage.Question // as it is asked upstream
	name     string              // canonical
	asked    asked
}

// asked is a program's question.
type asked struct {
	id       uint16
	recurse  bool
	question dnsmessage.Question
}

// Ask takes a packet of a program. Either it gives the reply, or the query to
// send upstream; or neither, for what is no question and gets no answer.
func (r *Resolver) Ask(packet []byte, now time.Time) (reply []byte, query *Query) {
	a, code, ok := readQuestion(packet)
	switch {
	case !ok:
		return nil, nil
	case code != dnsmessage.RCodeSuccess:
		return a.reply(code, nil, 0), nil
	}
	host := strings.TrimSuffix(a.question.Name.String(), ".")
	if d := r.opts.Policy.Resolve(host); !d.Allowed {
		r.deny(host, netip.Addr{}, d.Reason, now)
		return a.reply(dnsmessage.RCodeNameError, nil, 0), nil
	}
	name := strings.ToLower(host)
	v6 := a.question.Type == dnsmessage.TypeAAAA
	switch {
	case a.question.Class != dnsmessage.ClassINET, a.question.Type != dnsmessage.TypeA && !v6:
		// Browsers ask for SVCB and HTTPS as a matter of course: no attempt.
		if t := a.question.Type; t != dnsmessage.TypeSVCB && t != dnsmessage.TypeHTTPS {
			r.deny(host, netip.Addr{}, egress.QueryType, now)
		}
		return a.reply(dnsmessage.RCodeSuccess, nil, 0), nil
	case v6 && !r.opts.IPv6:
		return a.reply(dnsmessage.RCodeSuccess, nil, 0), nil
	}
	if addrs, left, ok := r.opts.Pins.Answer(name, v6, now); ok {
		return a.reply(dnsmessage.RCodeSuccess, addrs, left), nil
	}
	if !r.bucket.take(now) {
		r.deny(host, netip.Addr{}, egress.Rate, now)
		return a.reply(dnsmessage.RCodeServerFailure, nil, 0), nil
	}
	query, err := newQuery(name, a)
	if err != nil {
		return a.reply(dnsmessage.RCodeServerFailure, nil, 0), nil
	}
	return nil, query
}

func (r *Resolver) deny(host string, addr netip.Addr, why egress.Reason, now time.Time) {
	r.opts.Denials.Deny(egress.Denial{Host: host, Addr: addr, Reason: why, First: now, Last: now})
}

const (
	headerLen  = 12
	maxQuery   = 4096 // of which only the question is read
	queryCount = 4    // offsets in the header
	otherCount = 6
)

// readQuestion reads the only question of a packet. What is no query at all is
// not ok; another code than success is what it is to be told. Options and
// whatever else follows the question are not looked at.
func readQuestion(packet []byte) (a asked, code dnsmessage.RCode, ok bool) {
	if len(packet) < headerLen || len(packet) > maxQuery {
		return a, 0, false
	}
	var p dnsmessage.Parser
	h, err := p.Start(packet)
	if err != nil || h.Response {
		return a, 0, false
	}
	a.id, a.recurse = h.ID, h.RecursionDesired
	if h.OpCode != 0 {
		return a, dnsmessage.RCodeNotImplemented, true
	}
	// One question, no answers, no authorities.
	if binary.BigEndian.Uint16(packet[queryCount:]) != 1 || binary.BigEndian.Uint32(packet[otherCount:]) != 0 {
		return a, dnsmessage.RCodeFormatError, true
	}
	q, err := p.Question()
	if err != nil {
		return a, dnsmessage.RCodeFormatError, true
	}
	a.question = q
	return a, dnsmessage.RCodeSuccess, true
}

// newQuery asks for the same name and type, of nothing that a program chose
// but these.
func newQuery(name string, a asked) (*Query, error) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	var id [2]byte
	_, _ = rand.Read(id[:]) // it never fails
	q := &Query{id: binary.BigEndian.Uint16(id[:]), name: name, asked: a,
		question: dnsmessage.Question{Name: full, Type: a.question.Type, Class: dnsmessage.ClassINET}}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: q.id, RecursionDesired: true}, Questions: []dnsmessage.Question{q.question}}
	q.Packet, err = m.Pack()
	return q, err
}

// reply is what a program is told, made anew. Addresses are those of the
// question's type.
func (a asked) reply(code dnsmessage.RCode, addrs []netip.Addr, ttl time.Duration) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: a.id, Response: true, RecursionDesired: a.recurse, RecursionAvailable: true, RCode: code}}
	if a.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{a.question}
	}
	h := dnsmessage.ResourceHeader{Name: a.question.Name, Class: dnsmessage.ClassINET, TTL: uint32(max(ttl, 0) / time.Second)}
	for _, addr := range addrs[:min(len(addrs), maxTold)] {
		if addr.Is4() {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: addr.As4()}})
		} else {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	packet, err := m.Pack()
	if err != nil {
		return nil // a name that was read can be written
	}
	return packet
}

// Fail is what the program is told when its question is not asked.
func (q *Query) Fail() []byte { return q.asked.reply(dnsmessage.RCodeServerFailure, nil, 0) }

// Unanswered is what the program is told when the upstream server did not
// answer.
func (r *Resolver) Unanswered(q *Query, now time.Time) []byte {
	r.deny(q.name, netip.Addr{}, egress.Unresolved, now)
	return q.Fail()
}

var (
	// ErrNotTheAnswer says that a packet answers another question, or none:
	// wait on.
	ErrNotTheAnswer = errors.New("the packet is not the answer to the query")
	// ErrTruncated says that the same query has to be sent over TCP.
	ErrTruncated = errors.New("the answer is truncated")
)

// Answer takes what the upstream server sent and gives the reply to the
// program, with the addresses pinned.
func (r *Resolver) Answer(q *Query, packet []byte, now time.Time) ([]byte, error) {
	got, err := readAnswer(q, packet)
	if err != nil {
		return nil, err
	}
	// With IPv6, that a name has none of one kind is nothing.
	if got.code != dnsmessage.RCodeSuccess || len(got.addrs) == 0 && !r.opts.IPv6 {
		r.deny(q.name, netip.Addr{}, egress.Unresolved, now)
	}
	if got.code != dnsmessage.RCodeSuccess {
		return q.asked.reply(got.code, nil, 0), nil
	}
	for _, a := range got.addrs {
		if !r.opts.Policy.Answer(a) {
			// One address that the name must not lead to spoils all of them: a
			// name that answers with such a mix is out to rebind.
			r.deny(q.name, a, egress.Protected, now)
			return q.asked.reply(dnsmessage.RCodeNameError, nil, 0), nil
		}
	}
	addrs := got.addrs[:min(len(got.addrs), maxTold)]
	ttl := r.opts.Pins.Pin(q.name, q.question.Type == dnsmessage.TypeAAAA, addrs, got.ttl, now)
	return q.asked.reply(dnsmessage.RCodeSuccess, addrs, ttl), nil
}

// bucket lets through rate a second, and size at once.
type bucket struct {
	mu    sync.Mutex
	rate  float64
	size  float64
	spent float64
	last  time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.last); passed > 0 {
		b.spent = max(0, b.spent-passed.Seconds()*b.rate)
		b.last = now
	}
	if b.spent+1 > b.size {
		return false
	}
	b.spent++
	return true
}
