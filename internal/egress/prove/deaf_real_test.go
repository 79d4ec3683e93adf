//go:build dockertest

package prove

import (
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// TestACanaryThatGoesMeanwhileProvesNothing takes each canary's network away
// before the attempts in the sandbox: what comes to nobody is closed, and is no
// proof.
func TestACanaryThatGoesMeanwhileProvesNothing(t *testing.T) {
	s := newSite(t, "")
	_, cli := s.engineOf(t)
	for _, c := range []struct{ network, attempt, says string }{
		{networkPrefix + "a-", "tcp-ssh", "canary-router was open"},
		{networkPrefix + "z-", "near-container", "canary-neighbour was open"},
	} {
		t.Run(c.says, func(t *testing.T) {
			o := s.Options
			o.Modes, o.Only = []Mode{Deny}, []string{c.attempt}
			o.Progress = func(said string) {
				if !strings.HasSuffix(said, "in a sandbox") {
					return
				}
				networks, err := cli.NetworkList(t.Context(), client.NetworkListOptions{Filters: client.Filters{}.Add("label", label)})
				if err != nil {
					t.Fatal(err)
				}
				cut := 0
				for _, n := range networks.Items {
					if !strings.HasPrefix(n.Name, c.network) {
						continue
					}
					full, err := cli.NetworkInspect(t.Context(), n.ID, client.NetworkInspectOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for id := range full.Network.Containers {
						if _, err := cli.NetworkDisconnect(t.Context(), n.ID, client.NetworkDisconnectOptions{Container: id, Force: true}); err != nil {
							t.Fatal(err)
						}
						cut++
					}
				}
				if cut != 1 {
					t.Errorf("%d canaries on %s", cut, c.network)
				}
			}
			e, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if e.Modes[0].Count(Closed) != 1 {
				t.Errorf("the attempt is not closed: %+v", e.Modes[0].Attempts)
			}
			if got := strings.Join(e.Problems(), "; "); !strings.Contains(got, c.says) {
				t.Errorf("it passes for a proof: %q", got)
			}
		})
	}
}
