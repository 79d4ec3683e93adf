package prove

import (
	"testing"
	"time"
)

func TestWhichRunsAreDead(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ago := func(kind string, d time.Duration) Left { return Left{Kind: kind, Created: now.Add(-d)} }
	for name, c := range map[string]struct {
		held bool
		left []Left
		want bool
	}{
		"one that has just begun":                            {false, []Left{ago("image", time.Second)}, false},
		"one whose first container is being started":         {false, []Left{ago("image", 40*time.Second), ago("container", 10*time.Second)}, false},
		"one that never started a container":                 {false, []Left{ago("image", time.Minute), ago("container", 50*time.Second)}, true},
		"one that had time enough to make a container":       {false, []Left{ago("image", time.Minute)}, true},
		"one with networks that nothing holds":               {false, []Left{ago("image", time.Second), ago("network", time.Second)}, true},
		"one that is held, however long it makes nothing":    {true, []Left{ago("image", 20*time.Minute), ago("container", 19*time.Minute), ago("network", 19*time.Minute)}, false},
		"one that is held for longer than any run":           {true, []Left{ago("container", time.Second), ago("container", runLimit+time.Minute)}, true},
		"one that is held, with an image of an unknown time": {true, []Left{{Kind: "image"}, ago("container", time.Second)}, false},
	} {
		r := &remains{held: c.held}
		for _, l := range c.left {
			r.add(l)
		}
		if got := r.dead(now, unheldLimit); got != c.want {
			t.Errorf("%s: dead is %v", name, got)
		}
	}
}
