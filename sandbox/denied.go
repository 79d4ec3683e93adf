package sandbox

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Denied is what the sandbox's programs tried to reach and were refused, since
// its creation; also after Close. Only where some rule opens something, or with
// Learn, is anything there to refuse and count: without a network nothing is
// told. It is zero for a backend that does not
// declare [driver.CanLearn], and Unknown in a process that does not know: in
// mode proxy only the creator does, and in mode transparent a gateway, which may
// have ended.
func (s *Sandbox) Denied(ctx context.Context) (Denials, error) {
	d, ok := driver.As[driver.Denier](s.sb)
	if !ok {
		return Denials{}, nil
	}
	told, err := d.Denied(ctx)
	if err != nil {
		return Denials{}, s.begin("denied", Cmd{}).name(err)
	}
	return told, nil
}

// tellsDenials are the operations whose Records tell of them: those after which
// there may be some.
var tellsDenials = []string{"run", "run-code", "wait", "close"}

// DenialsUnknown says why [Denials] are Unknown, for people.
const DenialsUnknown = "in mode proxy it stands in the records of the process that created it; in mode transparent its gateway has ended"

// maxDenied is how many kinds one Record tells.
const maxDenied = 32

// denials remembers what Records have told, so that each request is in one.
type denials struct {
	mu    sync.Mutex
	told  map[deniedKind]int
	total int // of all kinds: they move between what is told apart and the rest
}

type deniedKind struct {
	host   string
	addr   netip.Addr
	port   uint16
	reason string
}

// tell puts into r what is new.
func (d *denials) tell(ctx context.Context, sb driver.Sandbox, r *Record) {
	denier, ok := driver.As[driver.Denier](sb)
	if !ok {
		return
	}
	now, err := denier.Denied(ctx)
	if err != nil {
		r.Warnings = append(slices.Clone(r.Warnings), "what was refused to the sandbox's programs is not known: "+err.Error())
		return
	}
	if now.Unknown {
		r.Warnings = append(slices.Clone(r.Warnings), "what was refused to the sandbox's programs is not known here: "+DenialsUnknown)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var fresh []Denial
	total := now.Other
	for _, one := range now.Told {
		total += one.Count
		k := deniedKind{one.Host, one.Addr, one.Port, one.Reason}
		before := d.told[k]
		if one.Count <= before {
			continue
		}
		if d.told == nil {
			d.told = map[deniedKind]int{}
		}
		d.told[k] = one.Count
		one.Count -= before
		fresh = append(fresh, one)
	}
	r.Refused = max(0, total-d.total)
	d.total = max(d.total, total)
	slices.SortStableFunc(fresh, func(a, b Denial) int { return cmp.Compare(b.Count, a.Count) })
	r.Denied = driver.Foremost(fresh, maxDenied)
}

// plain makes a name that a program chose fit for a log and a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '\uFFFD'
		}
		return r
	}, s)
}
