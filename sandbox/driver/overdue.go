package driver

import "time"

// How long an object may stay in a state that is only ever passed through.
const (
	// StartGrace is for what is created and not started, unless its creator has
	// said how long it may take (Status.StartBy).
	StartGrace = 10 * time.Second

	exitGrace = 5 * time.Second // exited, but not removed
)

// Overdue says why a sweep should remove the sandbox at the time now of the
// backend's clock, and "" when it should not: past its deadline, made but
// never started, or ended but never removed. It is the one judge of that.
func (s Status) Overdue(now time.Time) string {
	switch {
	case !s.Deadline.IsZero() && now.After(s.Deadline):
		return "past its deadline"
	case s.State == StateCreated && now.After(s.startBy()):
		return "created but never started"
	case s.State == StateExited && !s.Ended.IsZero() && now.Sub(s.Ended) > exitGrace:
		return "ended but never removed"
	}
	return ""
}

func (s Status) startBy() time.Time {
	if s.StartBy.IsZero() {
		return s.Created.Add(StartGrace)
	}
	return s.StartBy
}
