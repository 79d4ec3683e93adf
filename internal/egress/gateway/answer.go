package gateway

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answered is what the upstream server said.
type answered struct {
	code  dnsmessage.RCode
	addrs []netip.Addr // of the type that was asked for
	ttl   time.Duration
}

const (
	maxRecords = 128 // in an answer
	maxAliases = 8   // from the name to its addresses
)

// alias is a CNAME record.
type alias struct {
	to  string
	ttl uint32
}

// found is an address record.
type found struct {
	addr netip.Addr
	ttl  uint32
}

// readAnswer reads a packet as the answer to q. Aliases are followed inside it
// and nowhere else; what they pass is of no consequence, since only the name
// that was asked for gets the addresses.
func readAnswer(q *Query, packet []byte) (answered, error) {
	failed := answered{code: dnsmessage.RCodeServerFailure}
	var p dnsmessage.Parser
	h, err := p.Start(packet)
	if err != nil || !h.Response || h.ID != q.id || h.OpCode != 0 {
		return failed, ErrNotTheAnswer
	}
	question, err := p.Question()
	if err != nil || question.Type != q.question.Type || question.Class != q.question.Class || canonical(question.Name) != canonical(q.question.Name) {
		return failed, ErrNotTheAnswer
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return failed, ErrNotTheAnswer
	}
	switch {
	case h.Truncated:
		return failed, ErrTruncated
	case h.RCode == dnsmessage.RCodeNameError:
		return answered{code: h.RCode}, nil
	case h.RCode != dnsmessage.RCodeSuccess:
		return failed, nil
	}
	aliases, addrs, ok := records(&p, q.question.Type)
	if !ok {
		return failed, nil
	}
	at, ttl := canonical(q.question.Name), uint32(MaxTTL/time.Second)
	for hops := 0; ; hops++ {
		next, ok := aliases[at]
		if !ok {
			break
		}
		if hops == maxAliases {
			return failed, nil // a loop, or as good as one
		}
		at, ttl = next.to, min(ttl, next.ttl)
	}
	got := answered{code: dnsmessage.RCodeSuccess}
	for _, f := range addrs[at] {
		if !slices.Contains(got.addrs, f.addr) {
			got.addrs = append(got.addrs, f.addr)
		}
		ttl = min(ttl, f.ttl)
	}
	if len(got.addrs) > 0 { // that there are none is not kept for long
		got.ttl = time.Duration(ttl) * time.Second
	}
	return got, nil
}

// records reads the answer section: aliases, and addresses of one type. It is
// not ok when it cannot be read, is too long, or a name has two aliases.
func records(p *dnsmessage.Parser, kind dnsmessage.Type) (aliases map[string]alias, addrs map[string][]found, ok bool) {
	aliases, addrs = map[string]alias{}, map[string][]found{}
	for range maxRecords {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return aliases, addrs, true
		}
		if err != nil {
			return nil, nil, false
		}
		owner := canonical(h.Name)
		switch {
		case h.Class != dnsmessage.ClassINET:
			err = p.SkipAnswer()
		case h.Type == dnsmessage.TypeCNAME:
			var r dnsmessage.CNAMEResource
			if r, err = p.CNAMEResource(); err == nil {
				to := alias{canonical(r.CNAME), h.TTL}
				if old, twice := aliases[owner]; twice && old.to != to.to {
					return nil, nil, false
				}
				aliases[owner] = to
			}
		case h.Type == dnsmessage.TypeA && kind == h.Type:
			var r dnsmessage.AResource
			if r, err = p.AResource(); err == nil {
				addrs[owner] = append(addrs[owner], found{netip.AddrFrom4(r.A), h.TTL})
			}
		case h.Type == dnsmessage.TypeAAAA && kind == h.Type:
			var r dnsmessage.AAAAResource
			if r, err = p.AAAAResource(); err == nil {
				// Told as what it is: a mapped address is an IPv6 one on the wire.
				addrs[owner] = append(addrs[owner], found{netip.AddrFrom16(r.AAAA), h.TTL})
			}
		default:
			err = p.SkipAnswer()
		}
		if err != nil {
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func canonical(n dnsmessage.Name) string { return strings.ToLower(n.String()) }
