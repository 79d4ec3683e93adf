package driver

import (
	"testing"
	"time"
)

func TestWhatIsOverdue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	later := now.Add(time.Hour)
	for name, c := range map[string]struct {
		status Status
		want   string
	}{
		"one that runs":                                     {Status{State: StateRunning, Created: ago(time.Hour), Deadline: later}, ""},
		"one past its deadline":                             {Status{State: StatePaused, Created: ago(time.Hour), Deadline: ago(time.Second)}, "past its deadline"},
		"one that is being started":                         {Status{State: StateCreated, Created: ago(StartGrace - time.Second), Deadline: later}, ""},
		"one that was never started":                        {Status{State: StateCreated, Created: ago(StartGrace + time.Second), Deadline: later}, "created but never started"},
		"one whose creator asked for more time":             {Status{State: StateCreated, Created: ago(time.Minute), StartBy: now.Add(time.Second), Deadline: later}, ""},
		"one whose creator asked for it in vain":            {Status{State: StateCreated, Created: ago(time.Minute), StartBy: ago(time.Second), Deadline: later}, "created but never started"},
		"one whose creator asked for more than it may live": {Status{State: StateCreated, Created: ago(time.Minute), StartBy: later, Deadline: ago(time.Second)}, "past its deadline"},
		"one that has just ended":                           {Status{State: StateExited, Created: ago(time.Minute), Ended: ago(time.Second), Deadline: later}, ""},
		"one that ended and was not removed":                {Status{State: StateExited, Created: ago(time.Minute), Ended: ago(10 * time.Second), Deadline: later}, "ended but never removed"},
	} {
		if got := c.status.Overdue(now); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
