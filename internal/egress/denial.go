package egress

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Denial is a request that was refused. It never holds payload: no path, no
// header, nothing after the name.
type Denial struct {
	Host   string     `json:"host,omitempty"` // as it was asked for, cut at 256 bytes; attacker-chosen
	Addr   netip.Addr `json:"addr,omitzero"`
	Port   uint16     `json:"port,omitempty"` // 0 for a name that was only resolved
	Reason Reason     `json:"reason"`
	Count  int        `json:"count"`
	First  time.Time  `json:"first,omitzero"`
	Last   time.Time  `json:"last,omitzero"`
}

// Driver is d in the words of package driver.
func (d Denial) Driver() driver.Denial {
	return driver.Denial{Host: d.Host, Addr: d.Addr, Port: d.Port, Reason: string(d.Reason), Count: d.Count, First: d.First, Last: d.Last}
}

// DenialOf is d in the words of this package; a reason that it does not know is
// malformed.
func DenialOf(d driver.Denial) Denial {
	r := Reason(d.Reason)
	if _, ok := reasonTexts[r]; !ok {
		r = Malformed
	}
	return Denial{Host: d.Host[:min(len(d.Host), maxHost)], Addr: d.Addr, Port: d.Port, Reason: r, Count: max(d.Count, 1), First: d.First, Last: d.Last}
}

func (d Denial) compare(other Denial) int {
	return cmp.Or(cmp.Compare(d.Host, other.Host), d.Addr.Compare(other.Addr), cmp.Compare(d.Port, other.Port), cmp.Compare(d.Reason, other.Reason))
}

// Denials takes note of what was refused. Deny must not block, and is called
// from many goroutines.
type Denials interface{ Deny(d Denial) }

// Group is driver.Denial's.
func (d Denial) Group() string { return d.Driver().Group() }

// Tally counts denials, and keeps the first different ones of each Group. Its
// zero value is ready to use; it is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex
	kinds map[kind]*Denial
	of    map[string]int // how many kinds of each Group
	other int
	total int
}

const (
	// MaxKinds is how many different denials of one Group a Tally tells apart,
	// of names and of public addresses.
	MaxKinds = 1024
	// MaxProtected is the same for every other Group.
	MaxProtected = 128
)

// maxHost is how many bytes of a host are kept.
const maxHost = 256

type kind struct {
	host   string
	addr   netip.Addr
	port   uint16
	reason Reason
}

// room is how many kinds of a group there may be.
func room(group string) int {
	if group == "name" || group == "address" {
		return MaxKinds
	}
	return MaxProtected
}

// Deny counts d, with the count of 1 if it has none.
func (t *Tally) Deny(d Denial) {
	d.Host = d.Host[:min(len(d.Host), maxHost)]
	d.Count = max(d.Count, 1)
	k := kind{d.Host, d.Addr, d.Port, d.Reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += d.Count
	if known, ok := t.kinds[k]; ok {
		known.Count += d.Count
		known.Last = d.Last
		return
	}
	group := d.Group()
	if t.of[group] >= room(group) {
		t.other += d.Count
		return
	}
	if t.kinds == nil {
		t.kinds, t.of = map[kind]*Denial{}, map[string]int{}
	}
	d.Host = strings.Clone(d.Host) // and not all that it stood in
	k.host = d.Host
	t.kinds[k] = &d
	t.of[group]++
}

// Denied gives the denials that were told apart, in order of target, and how
// many more there were.
func (t *Tally) Denied() (told []Denial, other int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.kinds {
		told = append(told, *d)
	}
	slices.SortFunc(told, Denial.compare)
	return told, t.other
}

// Foremost is Denied with at most n told apart, some of every Group: of each,
// those that came first. How many more there were has the rest too.
func (t *Tally) Foremost(n int) (told []Denial, other int) {
	all, other := t.Denied()
	for _, d := range all {
		other += d.Count
	}
	slices.SortStableFunc(all, func(a, b Denial) int { return a.First.Compare(b.First) })
	told = driver.Foremost(all, n)
	for _, d := range told {
		other -= d.Count
	}
	slices.SortFunc(told, Denial.compare)
	return told, other
}

// Total is how much was denied.
func (t *Tally) Total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}
