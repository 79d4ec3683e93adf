package daemon

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
)

// speaker writes lines, each in one piece.
type speaker struct {
	mu sync.Mutex
	w  io.Writer
}

// say writes a line; one that nobody takes is lost, and so is what comes after.
func (s *speaker) say(l boot.Line) {
	for {
		b, err := json.Marshal(l)
		if err != nil {
			return
		}
		if len(b) < boot.MaxDenied || l.Denied == nil || len(l.Denied.Told) == 0 {
			s.mu.Lock()
			_, _ = s.w.Write(append(b, '\n'))
			s.mu.Unlock()
			return
		}
		l.Denied = shorter(l.Denied, len(l.Denied.Told)/2)
	}
}

// shorter tells the first n kinds one by one, and counts the others together.
func shorter(d *boot.Denied, n int) *boot.Denied {
	out := &boot.Denied{Told: d.Told[:n], Other: d.Other}
	for _, left := range d.Told[n:] {
		out.Other += left.Count
	}
	return out
}

// told is how much was told already.
type told struct{ count int }

// tell writes what was refused so far, if that has become more.
func (t *told) tell(tally *egress.Tally, out *speaker) {
	kinds, other := tally.Denied()
	d := &boot.Denied{Told: kinds, Other: other}
	count := shorter(d, 0).Other
	if count == t.count {
		return
	}
	t.count = count
	out.say(boot.Line{Denied: shorter(d, min(len(kinds), boot.MaxTold))})
}
