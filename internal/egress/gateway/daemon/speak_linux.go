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
	b, err := json.Marshal(l)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write(append(b, '\n'))
}

// told is how much was told already, and how often it was asked for.
type told struct{ count, asked int }

// tell writes what was refused so far, if that has become more: as many kinds
// one by one as a line holds, and how many others there were.
func (t *told) tell(tally *egress.Tally, out *speaker) {
	count := tally.Total()
	if count == t.count {
		return
	}
	t.answer(tally, out)
}

// answer writes what was refused so far.
func (t *told) answer(tally *egress.Tally, out *speaker) {
	t.count = tally.Total()
	out.say(boot.Line{Denied: denied(tally), Asked: t.asked})
}

func denied(tally *egress.Tally) *boot.Denied {
	for n := boot.MaxTold; ; n /= 2 {
		told, other := tally.Foremost(n)
		d := &boot.Denied{Told: told, Other: other}
		if b, err := json.Marshal(boot.Line{Denied: d}); n == 0 || err == nil && len(b) < boot.MaxDenied {
			return d
		}
	}
}
