package pid1

import (
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// watchClock ends the sandbox at its deadline, by whichever of the two clocks
// comes first: the monotonic one stands still while a machine sleeps, the
// other while it is set back.
func (g *guest) watchClock() {
	for {
		g.mu.Lock()
		deadline := g.deadline
		g.mu.Unlock()
		left := timeLeft(time.Now(), deadline)
		if left <= 0 {
			g.end(wire.ExitDeadline)
		}
		select {
		case <-time.After(min(left, time.Second)):
		case <-g.moved:
		}
	}
}

func timeLeft(now, deadline time.Time) time.Duration {
	return min(deadline.Sub(now), deadline.Round(0).Sub(now.Round(0)))
}

// live begins a lifetime. The caller holds g.mu, or nobody else has g yet.
func (g *guest) live(lifetime time.Duration) {
	now := time.Now()
	g.deadline, g.latest = now.Add(lifetime), now.Add(max(lifetime, g.boot.Longest))
}

// extend moves the deadline to a later or an earlier one, within what was
// granted at the start.
func (g *guest) extend(unixNano int64) *wire.Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, at := time.Now(), time.Unix(0, unixNano)
	refuse := func(text, hint string) *wire.Failure {
		return &wire.Failure{Code: "invalid", Field: "deadline", Text: text, Hint: hint}
	}
	switch {
	case !at.After(now):
		return refuse("it has passed", "give a time to come, or end the sandbox")
	case at.After(g.latest.Round(0)):
		return refuse("it is later than what was fixed when the sandbox was created", "create the sandbox with a larger MaxLifetime")
	}
	g.deadline = now.Add(at.Sub(now)) // with both clocks
	select {
	case g.moved <- struct{}{}:
	default: // it will look anyway
	}
	return nil
}
