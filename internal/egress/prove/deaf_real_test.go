//go:build dockertest

package prove

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/network"
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

// TestWhatACanaryTellsItselfIsNoAttempts has a run in another range than the
// first, where what a program sends from an address of its choice is answered
// late, by the canary's own kernel to itself.
func TestWhatACanaryTellsItselfIsNoAttempts(t *testing.T) {
	s := newSite(t, "")
	_, cli := s.engineOf(t)
	made, err := cli.NetworkCreate(t.Context(), networkPrefix+"test-"+token(4), client.NetworkCreateOptions{Driver: "bridge", IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: ranges[0]}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeNetwork(context.Background(), cli, made.ID); err != nil {
			t.Error(err)
		}
	})
	p := &prover{Options: s.Options}
	p.Only = []string{"packet-spoofed", "packet-frame"}
	defer s.build(t, p)()
	ts, err := p.trials(Deny)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.unprotected(t.Context(), Deny, ts.canaries, ts.all, bare()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range ts.all {
		if tr.Control != Open {
			t.Errorf("%s is %s where nothing is enforced", tr.Name, tr.Control)
		}
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // the kernel gives up after three
		if err := p.mark(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen, _ := sort(p.witness.take(), ts.all)
		for tr, what := range seen {
			t.Errorf("%s, which has ended: %s", tr.Name, what)
		}
	}
}
