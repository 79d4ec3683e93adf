//go:build dockertest

package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// killedAt runs a prove in a process of its own, and kills that process when
// the engine has answered the nth call that changes something, before the
// process hears of it. It tells which calls there were.
func (s *site) killedAt(t *testing.T, nth int) []string {
	t.Helper()
	text, err := json.Marshal(orders{Runtime: s.Runtime, Probe: s.Probe, Modes: []Mode{Transparent}, Only: []string{"tcp-ssh"}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	socket := strings.TrimPrefix(needed(t, "SANDBOXIO_TEST_DOCKER"), "unix://")
	started := make(chan *os.Process, 1)
	var mu sync.Mutex
	var calls []string
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
		FlushInterval: -1,
		ModifyResponse: func(res *http.Response) error {
			if res.Request.Method != http.MethodGet && res.Request.Method != http.MethodHead {
				mu.Lock()
				defer mu.Unlock()
				if calls = append(calls, res.Request.Method+" "+res.Request.URL.Path); len(calls) == nth {
					return (<-started).Kill()
				}
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {},
	}
	at := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	defer func() { _ = server.Close(); <-done }()
	cmd.Env = append(os.Environ(), "SANDBOXIO_PROVE="+string(text), "SANDBOXIO_TEST_DOCKER=unix://"+at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started <- cmd.Process
	_ = cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	return calls
}

// holds lists all that an engine has, whoever made it.
func holds(t *testing.T, cli *client.Client) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	containers, err := cli.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	// Where others use the engine too, what is theirs comes and goes.
	shared := os.Getenv("SANDBOXIO_TEST_RUN") != ""
	for _, c := range containers.Items {
		if shared && c.Labels[label] == "" && c.Labels[driver.LabelManaged] == "" {
			continue
		}
		out[fmt.Sprint("container ", c.Names, c.State)] = true
	}
	networks, err := cli.NetworkList(t.Context(), client.NetworkListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		if shared && !strings.HasPrefix(n.Name, "sandboxio-") {
			continue
		}
		out["network "+n.Name] = true
	}
	images, err := cli.ImageList(t.Context(), client.ImageListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images.Items {
		if shared && !strings.Contains(strings.Join(i.RepoTags, " "), "sandboxio-") {
			continue
		}
		out[fmt.Sprint("image ", i.ID, i.RepoTags)] = true
	}
	volumes, err := cli.VolumeList(t.Context(), client.VolumeListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes.Items {
		if shared && !strings.HasPrefix(v.Name, "sandboxio-") {
			continue
		}
		out["volume "+v.Name] = true
	}
	return out
}

// engineOf opens the engine under test past every driver too.
func (s *site) engineOf(t *testing.T) (driver.Backend, *client.Client) {
	t.Helper()
	b, err := s.Open(t.Context(), Site{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	p := &prover{}
	if _, err := p.engine(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b, p.cli
}

// TestTheNextRunCleansWhatKilledOnesLeft kills some, each at another moment of
// its work, and counts what the engine holds by difference.
func TestTheNextRunCleansWhatKilledOnesLeft(t *testing.T) {
	s := newSite(t, "")
	b, cli := s.engineOf(t)
	before := holds(t, cli)
	all := s.killedAt(t, 0)
	t.Logf("%d calls: %s", len(all), strings.Join(all, "\n"))
	if now := holds(t, cli); !maps.Equal(now, before) {
		t.Fatalf("a run that was not killed leaves something: %v, before %v", now, before)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	moments := []int{1, 2, 6} // the image alone; a container that was never started; the first network
	for range 5 {
		moments = append(moments, 1+random.IntN(len(all)*3/4)) // how many removals there are is a matter of time
	}
	t.Logf("seed %d: %v", seed, moments)
	for _, nth := range moments {
		if calls := s.killedAt(t, nth); len(calls) < nth {
			t.Errorf("the run ended after %d calls, and was to be killed at the %dth", len(calls), nth)
		}
	}
	left := holds(t, cli)
	maps.DeleteFunc(left, func(what string, _ bool) bool { return before[what] })
	t.Logf("%d killed runs leave: %q", len(moments), slices.Sorted(maps.Keys(left)))
	if len(left) == 0 {
		t.Error("nothing is left, so that nothing is cleaned")
	}

	const unheld = 2 * time.Second
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		dead, err := sweep(t.Context(), b, false, unheld)
		if err != nil {
			t.Fatal(err)
		}
		found, err := look(t.Context(), cli)
		if err != nil {
			t.Fatal(err)
		}
		runs := map[string]bool{}
		for _, l := range dead {
			runs[l.Run] = true
		}
		if len(runs) == len(found) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d killed runs are known to be dead", len(runs), len(found))
		}
	}
	o := s.Options
	o.Modes, o.Only, o.unheld = []Mode{Transparent}, []string{"tcp-ssh"}, unheld
	e, err := Run(t.Context(), o)
	if err != nil || len(e.Problems()) > 0 {
		t.Errorf("%v, %q", err, e.Problems())
	}
	if now := holds(t, cli); !maps.Equal(now, before) {
		maps.DeleteFunc(now, func(what string, _ bool) bool { return before[what] })
		t.Errorf("after the next run is left: %q", slices.Sorted(maps.Keys(now)))
	}
}

// TestTwoRunsAtOnceProveBoth has each wait for the other at every step, and
// somebody sweep meanwhile.
func TestTwoRunsAtOnceProveBoth(t *testing.T) {
	s := newSite(t, "")
	b, cli := s.engineOf(t)
	before := holds(t, cli)
	var steps [16]sync.WaitGroup
	for i := range steps {
		steps[i].Add(2)
	}
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() {
			o := s.Options
			o.Modes, o.Only = []Mode{Deny, Transparent}, []string{"tcp-ssh", "tcp6", "engine-host", "engine-host-udp", "near-container"}
			step := 0
			release := func() {
				for ; step < len(steps); step++ {
					steps[step].Done()
				}
			}
			defer release()
			o.Progress = func(said string) {
				t.Logf("%d: %s", n, said)
				if step < len(steps) {
					steps[step].Done()
					steps[step].Wait()
					step++
				}
				if left, err := sweep(t.Context(), b, true, unheldLimit); len(left) > 0 || err != nil {
					t.Errorf("of runs that live this was taken for dead: %v, %v", left, err)
				}
			}
			e, err := Run(t.Context(), o)
			if err != nil {
				t.Errorf("%d: %v", n, err)
			}
			for _, p := range e.Problems() {
				t.Errorf("%d: %s", n, p)
			}
		})
	}
	all.Wait()
	if now := holds(t, cli); !maps.Equal(now, before) {
		t.Errorf("after: %v, before: %v", now, before)
	}
}

// TestReapTakesWhatAKilledRunLeft has the command do it.
func TestReapTakesWhatAKilledRunLeft(t *testing.T) {
	s := newSite(t, "")
	b, cli := s.engineOf(t)
	before := holds(t, cli)
	s.killedAt(t, 16) // networks and canaries are there
	if now := holds(t, cli); maps.Equal(now, before) {
		t.Fatal("nothing is left, so that nothing is taken")
	}
	reap := func(more ...string) string {
		cmd := exec.CommandContext(t.Context(), needed(t, "SANDBOXIO_CLI"), append([]string{"reap", "--backend", "docker://" + strings.TrimPrefix(needed(t, "SANDBOXIO_TEST_DOCKER"), "unix://"), "--json"}, more...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until its process's connections have ended
		if left, err := Sweep(t.Context(), b, false); err != nil || len(left) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the killed run is not known to be dead")
		}
	}
	if out := reap(); !strings.Contains(out, `"kind": "network"`) || !strings.Contains(out, `"kind": "image"`) || strings.Contains(out, `"removed": true`) {
		t.Errorf("it reports: %s", out)
	}
	if out := reap("--label", "team=search"); strings.Contains(out, `"kind": "network"`) {
		t.Errorf("by a label that it does not have it reports: %s", out)
	}
	reap("--kill")
	if now := holds(t, cli); !maps.Equal(now, before) {
		t.Errorf("after: %v, before: %v", now, before)
	}
}
