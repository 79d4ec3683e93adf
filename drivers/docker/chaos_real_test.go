//go:build dockertest && chaos

// This test counts everything that the engine holds, so that nobody else may
// use the engine meanwhile: it has a build tag of its own, and a run.

package docker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The chaos: creators that work all the time, each killed at a random moment
// of a random phase of its work.
const (
	rounds    = 200
	atOnce    = 4
	noProcess = 15 * time.Second // after a kill, until no process of its sandbox runs
	sweeps    = 5 * time.Second
	// and until the engine holds nothing of it: what was killed while it was
	// created is left alone for StartGrace, and found by the next sweep.
	noObject = driver.StartGrace + 2*sweeps + 20*time.Second
	longest  = 30 * time.Second // no creator has a sandbox for longer, on the busiest machine
)

// phases are what a creator says before it begins each.
var phases = []string{"create", "exec", "copy", "close"}

// marker is the argument of every program that a creator starts, by which the
// machine's own list of processes knows them, whatever the engine says.
const marker = "86413.25"

// TestMain lets the test's program be a creator.
func TestMain(m *testing.M) {
	if label := os.Getenv("SANDBOXIO_TEST_CREATOR"); label != "" {
		fmt.Fprintln(os.Stderr, create(context.Background(), label))
		os.Exit(1) // it is killed before it gets here
	}
	os.Exit(m.Run())
}

// create makes and uses sandboxes until it is killed: at least one program in
// each does not want to die.
func create(ctx context.Context, label string) error {
	b, err := docker.Open(ctx, docker.Options{Host: os.Getenv("SANDBOXIO_TEST_DOCKER")})
	if err != nil {
		return err
	}
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Owner: label})
	for {
		fmt.Println("create")
		sb, err := rt.Create(ctx, sandbox.Spec{
			Image: os.Getenv("SANDBOXIO_TEST_IMAGE"), Trust: sandbox.Trusted("our own test"),
			Labels: map[string]string{"chaos": label}, Resources: sandbox.Resources{MemoryMiB: 64, DiskMiB: 32, PIDs: 64},
		})
		if err != nil {
			return err
		}
		fmt.Println("exec")
		p, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"sh", "-c",
			`trap '' TERM HUP INT; setsid sh -c 'trap "" TERM; sleep "$0" & sleep "$0"' "$0" & sleep "$0"`, marker}})
		if err != nil {
			return err
		}
		for range 20 {
			if _, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"true"}}); err != nil {
				return err
			}
		}
		fmt.Println("copy")
		data := make([]byte, 4<<20)
		for range 4 {
			if err := sb.Files().Write(ctx, "/work/data", data, 0o600); err != nil {
				return err
			}
			if _, err := sb.Files().Read(ctx, "/work/data"); err != nil {
				return err
			}
		}
		fmt.Println("close")
		if err := sb.Close(); err != nil {
			return err
		}
		if _, err := p.Wait(); !errors.Is(err, sandbox.CodeGone) {
			return fmt.Errorf("a program outlives its sandbox: %w", err)
		}
	}
}

// round starts a creator and kills it at a moment of the phase. It returns
// when the creator was killed.
func round(ctx context.Context, label, phase string, moment time.Duration) (time.Time, error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "SANDBOXIO_TEST_CREATOR="+label)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return time.Time{}, err
	}
	if err := cmd.Start(); err != nil {
		return time.Time{}, err
	}
	lines := bufio.NewScanner(out)
	reached := false
	for !reached && lines.Scan() {
		reached = lines.Text() == phase
	}
	if reached {
		time.Sleep(moment) // the moment is what is random here; nothing is waited for
	}
	err = cmd.Process.Kill()
	killed := time.Now()
	_ = cmd.Wait()
	if !reached || said.Len() > 0 {
		return killed, fmt.Errorf("the creator did not get to be killed in %q: %s", phase, said.String())
	}
	return killed, err
}

// TestRealChaosLeavesNothing kills creators at random moments, with a keeper
// at work, and counts what the engine holds by difference.
func TestRealChaosLeavesNothing(t *testing.T) {
	ctx := t.Context()
	host := os.Getenv("SANDBOXIO_TEST_DOCKER")
	engine, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	w := &watch{engine: engine}
	pristine, err := w.holds(ctx)
	if err != nil {
		t.Fatalf("%v: make test starts an engine and names it", err)
	}
	label := fmt.Sprintf("chaos-%d", os.Getpid())
	stop := keep(t, host, label)
	w.before, err = w.holds(ctx)
	if err != nil || len(w.before) != len(pristine)+1 {
		t.Fatalf("the keeper is not there: %v, %v", w.before, err)
	}

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var last time.Time
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	for worker := range atOnce {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		group.Go(func() {
			for n := range next {
				killed, err := round(ctx, label, phases[n%len(phases)], time.Duration(random.Int64N(int64(150*time.Millisecond))))
				mu.Lock()
				if killed.After(last) {
					last = killed
				}
				mu.Unlock()
				if err != nil {
					t.Errorf("round %d: %v", n, err)
				}
			}
		})
	}
	most := 0
	for n := range rounds {
		next <- n
		if n%20 == 0 { // seen at work, so that their end is; and none is older than it may be
			running, err := w.processes(ctx)
			_, herr := w.holds(ctx)
			if err := errors.Join(err, herr); err != nil {
				t.Error(err)
			}
			most = max(most, running)
		}
	}
	close(next)
	group.Wait()
	if most == 0 {
		t.Error("no process was ever seen, so that none is gone proves nothing")
	}
	processes, err := w.none(ctx, last.Add(noProcess), w.processes)
	if err != nil {
		t.Errorf("%v after the last kill processes run on: %v", noProcess, err)
	}
	objects, err := w.none(ctx, last.Add(noObject), w.left)
	if err != nil {
		t.Errorf("%v after the last kill: %v", noObject, err)
	}
	t.Logf("%d creators killed; up to %d processes seen; no process %v, no object %v after the last kill", rounds, most,
		processes.Sub(last).Round(time.Millisecond), objects.Sub(last).Round(time.Millisecond))
	stop()
	if now, err := w.holds(ctx); err != nil || !maps.Equal(now, pristine) {
		t.Errorf("before: %v\nafter: %v, %v", pristine, now, err)
	}
}

// keep has the engine sweep what wears the label, until stop.
func keep(t *testing.T, host, label string) (stop func()) {
	t.Helper()
	b, err := docker.Open(t.Context(), docker.Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	schedules, ok := driver.As[driver.Scheduler](b)
	if !ok {
		t.Fatal("the backend keeps no schedules")
	}
	if _, err := schedules.PutSchedule(t.Context(), driver.Schedule{Name: label, Interval: sweeps, Labels: map[string]string{"chaos": label}}); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := errors.Join(schedules.DeleteSchedule(ctx, label), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// watch looks at an engine past every driver.
type watch struct {
	engine *client.Client
	before map[string]bool
}

// holds lists everything on the engine, whoever made it.
func (w *watch) holds(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	containers, err := w.engine.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, err
	}
	for _, c := range containers.Items {
		// Where others use the engine too, what is theirs comes and goes.
		if os.Getenv("SANDBOXIO_TEST_RUN") != "" && !strings.HasPrefix(c.Names[0], "/sandboxio-") {
			continue
		}
		all["container "+c.ID] = true
		if age := time.Since(time.Unix(c.Created, 0)); w.before != nil && !w.before["container "+c.ID] && age > noObject+longest {
			return nil, fmt.Errorf("container %s is %v old", c.Names[0], age)
		}
	}
	networks, err := w.engine.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range networks.Items {
		all["network "+n.ID] = true
	}
	volumes, err := w.engine.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Items {
		all["volume "+v.Name] = true
	}
	return all, nil
}

// left counts what was not there before.
func (w *watch) left(ctx context.Context) (int, error) {
	now, err := w.holds(ctx)
	maps.DeleteFunc(now, func(what string, _ bool) bool { return w.before[what] })
	return len(now), err
}

// processes counts the creators' programs on this machine, which the engine
// runs on, and everything in containers that were not there before.
func (w *watch) processes(ctx context.Context) (int, error) {
	n := 0
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, d := range dirs {
		if b, err := os.ReadFile("/proc/" + d.Name() + "/cmdline"); err == nil && slices.Contains(strings.Split(string(b), "\x00"), marker) {
			n++
		}
	}
	containers, err := w.engine.ContainerList(ctx, client.ContainerListOptions{}) // that run
	if err != nil {
		return n, err
	}
	for _, c := range containers.Items {
		if w.before["container "+c.ID] {
			continue
		}
		if top, err := w.engine.ContainerTop(ctx, c.ID, client.ContainerTopOptions{}); err == nil { // else it has just ended
			n += len(top.Processes)
		}
	}
	return n, nil
}

// none waits until count is 0, and says when that was.
func (w *watch) none(ctx context.Context, deadline time.Time, count func(context.Context) (int, error)) (time.Time, error) {
	for {
		n, err := count(ctx)
		if now := time.Now(); err == nil && n == 0 {
			return now, nil
		} else if now.After(deadline) {
			return now, fmt.Errorf("%d are left (%v)", n, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
