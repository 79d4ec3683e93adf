package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/codes"
)

// What an explanation tells people to type must be there to be typed.
func TestCommandsInExplanationsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, e := range codes.All() {
		for _, s := range e.Steps {
			args, ours := strings.CutPrefix(s.Command, "sandboxio ")
			if !ours {
				continue
			}
			seen++
			root := (&app{Streams: Streams{Out: io.Discard, Err: io.Discard}}).root()
			c, rest, err := root.Find(strings.Fields(args))
			if err != nil || c == root {
				t.Errorf("%s: there is no command %q (%v)", e.Code, s.Command, err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", e.Code, s.Command, err)
			} else if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", e.Code, s.Command, err)
			}
		}
	}
	if seen == 0 {
		t.Error("no explanation names a command of ours")
	}
}
