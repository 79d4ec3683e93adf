package driver

import "time"

// How long an object may stay in a state that is only ever passed through.
const (
	startGrace = 10 * time.Second // created, but not started
	exitGrace  = 5 * time.Second  // exited, but not removed
)

// Overdue says why a sweep should remove the sandbox at the time now of the
// backend's clock, and "" when it should not: past its deadline, made but
// never started, or ended but never removed. It is the one judge of that.
func (s Status) Overdue(now time.Time) string {
	switch {
	case !s.Deadline.IsZero() && now.After(s.Deadline):
		return "past its deadline"
	case s.State == StateCreated && now.Sub(s.Created) > startGrace:
		return "created but never started"
	case s.State == StateExited && !s.Ended.IsZero() && now.Sub(s.Ended) > exitGrace:
		return "ended but never removed"
	}
	return ""
}
