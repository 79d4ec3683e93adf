//go:build dockertest

package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// owner starts a process that owns a sandbox, and gives it and the sandbox.
func owner(t *testing.T, b *Backend) (*exec.Cmd, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "SANDBOXIO_TEST_OWNER="+realSpec(t, "x").Token, "SANDBOXIO_TEST_NAME="+t.Name())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(line)
	if isGone(t, b, id) {
		t.Fatal("the sandbox is gone before its owner")
	}
	return cmd, id
}

// hostProcesses counts processes on this machine with that argument. The
// engine under test runs on it.
func hostProcesses(t testing.TB, arg string) int {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range dirs {
		if b, err := os.ReadFile("/proc/" + d.Name() + "/cmdline"); err == nil && strings.Contains(string(b), "sleep\x00"+arg+"\x00") {
			n++
		}
	}
	return n
}

func TestRealASandboxEndsWithItsOwner(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			b, _ := engine(t)
			cmd, id := owner(t, b)
			eventually(t, 60*time.Second, "the workload's processes are seen from here, so that their end is", func() bool { return hostProcesses(t, "987") == 3 })
			began := time.Now()
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			eventually(t, 15*time.Second, "no process of the sandbox is left", func() bool { return hostProcesses(t, "987") == 0 })
			processes := time.Since(began)
			eventually(t, 15*time.Second, "the container is gone", func() bool { return isGone(t, b, id) })
			t.Logf("processes gone after %v, container after %v", processes.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		})
	}
}

func TestRealAttachJoinsFromElsewhere(t *testing.T) {
	b, image := engine(t)
	for _, detached := range []bool{false, true} {
		spec := realSpec(t, image)
		spec.Detached = detached
		spec.Env = map[string]string{"FROM_CREATOR": "yes"}
		sb := create(t, b, spec)
		sh(t, sb, "echo shared > /work/f")

		other, err := Open(t.Context(), b.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		joined, err := other.Attach(t.Context(), sb.Status().ID)
		if err != nil {
			t.Fatal(err)
		}
		if st := joined.Status(); st.Isolation != driver.Unverified {
			t.Errorf("measured before anything was: %v", st.Isolation)
		}
		if out := sh(t, joined, "cat /work/f; echo $FROM_CREATOR"); out != "shared\nyes\n" {
			t.Errorf("%q", out)
		}
		if st := joined.Status(); st.Isolation != driver.Container {
			t.Errorf("after joining: %+v", st)
		}
		// A second one beside it, and the creator undisturbed.
		if out := sh(t, sb, "cat /work/f"); out != "shared\n" {
			t.Errorf("the creator: %q", out)
		}
		if err := joined.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := sb.Start(t.Context(), driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); !errors.Is(err, driver.CodeGone) {
			t.Errorf("the creator, afterwards: %v", err)
		}
	}
}

func TestRealADeadlineIsMovedByAnotherProcessAndEndsTheSandbox(t *testing.T) {
	b, image := engine(t)
	for _, detached := range []bool{false, true} {
		spec := realSpec(t, image)
		spec.Detached, spec.Lifetime, spec.MaxLifetime = detached, 8*time.Second, time.Minute
		sb := create(t, b, spec)
		id := sb.Status().ID
		other, err := Open(t.Context(), b.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		joined, err := other.Attach(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		at := in(12 * time.Second)
		if err := extend(t.Context(), joined, at); err != nil {
			t.Fatal(err)
		}
		if err := extend(t.Context(), joined, in(2*time.Minute)); !errors.Is(err, driver.CodeInvalid) {
			t.Errorf("beyond what was granted: %v", err)
		}
		for st, err := range b.List(t.Context(), map[string]string{driver.LabelInstance: spec.Token}) {
			if err != nil || !st.Deadline.Equal(at) || st.Overdue(time.Now()) != "" {
				t.Errorf("listed as %v, want %v: %v", st.Deadline, at, err)
			}
		}
		time.Sleep(time.Until(sb.Status().Deadline.Add(time.Second))) // beyond its first deadline
		if out := sh(t, sb, "echo alive"); out != "alive\n" {
			t.Errorf("after its first deadline: %q", out)
		}
		eventually(t, time.Until(at)+20*time.Second, "it ended by its new one", func() bool { return isGone(t, b, id) })
		if early := time.Until(at); early > time.Second {
			t.Errorf("it ended %v early", early)
		}
		if err := extend(t.Context(), joined, in(10*time.Second)); !errors.Is(err, driver.CodeGone) && !errors.Is(err, driver.CodeNotFound) {
			t.Errorf("one that has ended: %v", err)
		}
	}
}

func TestRealOfManyWhoExtendAtATimeOneWinsInBothPlaces(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.MaxLifetime = time.Hour
	sb := create(t, b, spec)
	var all sync.WaitGroup
	for i := range 6 {
		s := sb
		if i%2 == 1 {
			var err error
			if s, err = b.Attach(t.Context(), sb.Status().ID); err != nil {
				t.Fatal(err)
			}
		}
		all.Go(func() {
			for k := range 5 {
				if err := extend(t.Context(), s, in(time.Duration(5+i+6*k)*time.Minute)); err != nil {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	box, err := b.inspect(t.Context(), raw(t, b), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := sb.(*sandbox)
	if !ok {
		t.Fatalf("%T", sb)
	}
	rep, err := s.guest.Attest(t.Context())
	if inside := time.Unix(0, rep.Deadline); err != nil || !inside.Equal(box.Deadline) {
		t.Errorf("the name says %v, PID 1 %v, %v", box.Deadline, inside, err)
	}
}

func TestRealAPausedSandboxCanBeAttachedAndKilled(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Detached = true
	sb := create(t, b, spec)
	if _, err := raw(t, b).ContainerPause(t.Context(), sb.Status().ID, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	joined, err := b.Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	if st := joined.Status(); st.State != driver.StatePaused {
		t.Errorf("state %s", st.State)
	}
	if _, err := joined.Start(t.Context(), driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); !errors.Is(err, driver.CodeConflict) {
		t.Errorf("start: %v", err)
	}
	if err := joined.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !isGone(t, b, sb.Status().ID) {
		t.Error("still there")
	}
}

func TestRealListTellsWhatIsThere(t *testing.T) {
	b, image := engine(t)
	one, two := realSpec(t, image), realSpec(t, image)
	two.Detached, two.Labels["which"] = true, "two"
	first, second := create(t, b, one), create(t, b, two)
	seen := map[string]driver.Status{}
	for st, err := range b.List(t.Context(), map[string]string{"test": t.Name()}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[st.ID] = st
	}
	for _, sb := range []driver.Sandbox{first, second} {
		want, got := sb.Status(), seen[sb.Status().ID]
		if got.Name != want.Name || !got.Deadline.Equal(want.Deadline) || got.Detached != want.Detached || got.Facts != want.Facts ||
			got.State != driver.StateRunning || got.Created.Sub(want.Created).Abs() > 2*time.Second {
			t.Errorf("listed %+v\nmade %+v", got, want)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d listed", len(seen))
	}
	n := 0
	for _, err := range b.List(t.Context(), map[string]string{"test": t.Name(), "which": "two"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d have both labels: filters are joined by and", n)
	}
	now, err := b.Now(t.Context())
	if err != nil || time.Since(now).Abs() > 5*time.Second {
		t.Errorf("%v %v", now, err)
	}
}

func TestRealNothingSecretIsInTheEngine(t *testing.T) {
	b, image := engine(t)
	const canary = "canary-3f1d0c"
	spec := realSpec(t, image)
	spec.Env = map[string]string{"PLAIN": canary + "-env"}
	sb := create(t, b, spec)
	p, err := sb.Start(t.Context(), driver.Cmd{Args: []string{"sh", "-c", `printf %s "$S" | sha256sum; sleep 30`}, Timeout: time.Minute,
		Secrets: map[string]driver.Secret{"S": driver.NewSecret(canary + "-secret")}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Recv(t.Context())
	if want := digestOf([]byte(canary + "-secret"))[7:]; err != nil || !strings.HasPrefix(string(c.Data), want) {
		t.Errorf("it did not arrive: %q %v", c.Data, err)
	}
	cli := raw(t, b)
	res, err := cli.ContainerInspect(t.Context(), sb.Status().ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	top, err := cli.ContainerTop(t.Context(), sb.Status().ID, client.ContainerTopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal([]any{json.RawMessage(res.Raw), top.Processes})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), canary) {
		t.Error("the engine knows a value of the sandbox's env or secrets")
	}
	if !strings.Contains(string(all), "sha256sum") {
		t.Error("the workload was not seen, so this shows nothing")
	}
}
