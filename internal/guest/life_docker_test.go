//go:build dockertest

package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// hungUp is less than an owner is given who is silent, and connected.
const hungUp = 4 * time.Second

func TestAnOwnedSandboxEndsWhenItsOwnerHangsUp(t *testing.T) {
	b := owned(t)
	b.start(driver.Cmd{Args: []string{"sh", "-c", "setsid sleep 31337 & echo up; wait"}})
	start := time.Now()
	_ = b.guest.Close()
	if code := b.ended(20 * time.Second); code != guest.ExitOwner {
		t.Errorf("exit %d", code)
	}
	took := time.Since(start)
	t.Logf("ended after %v", took)
	if took > hungUp {
		t.Errorf("it took %v: a silent owner is given no longer", took)
	}
	if _, err := b.guest.Attest(limited(t, time.Second)); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("a call afterwards: %v", err)
	}
}

// ownerProcess makes another process of this program the owner of a box.
func ownerProcess(t *testing.T, b *box) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GUEST_TEST_OWN="+b.id)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal("the owner did not come up")
	}
	return cmd.Process
}

// own is that process: it attaches, connects, starts a program, and stays.
func own(id string) error {
	res, err := engine.ContainerAttach(context.Background(), id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return err
	}
	c, err := guest.Connect(context.Background(), attach(res.Conn), guest.Options{Configure: true})
	if err != nil {
		return err
	}
	if _, err := c.Start(context.Background(), driver.Cmd{Args: []string{"setsid", "sleep", "31337"}, Timeout: time.Minute}); err != nil {
		return err
	}
	fmt.Print("+")
	select {}
}

func TestAnOwnedSandboxEndsWithAnOwnerThatIsKilledOrStopped(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, want{boot: guest.Boot{Owned: true}, silent: true})
			owner := ownerProcess(t, b)
			eventually(t, 20*time.Second, "the program runs", func() bool { return strings.Contains(b.top(), "sleep 31337") })
			start := time.Now()
			if err := owner.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := b.ended(10 * time.Second); code != guest.ExitOwner {
				t.Errorf("exit %d", code)
			}
			t.Logf("ended after %v", time.Since(start))
		})
	}
}

func TestAPauseIsNotAnOwnersSilence(t *testing.T) {
	b := owned(t)
	ctx := limited(t, 60*time.Second)
	if _, err := engine.ContainerPause(ctx, b.id, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := b.guest.Start(short, driver.Cmd{Args: []string{"true"}, Timeout: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a start in a paused sandbox: %v", err)
	}
	time.Sleep(7 * time.Second) // longer than the guest waits for an owner
	if _, err := engine.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(7 * time.Second)
	if r := b.run("echo", "awake"); r.stdout != "awake\n" {
		t.Errorf("%+v", r)
	}
}

func TestTheGuestIsSilentBeforeHello(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}, silent: true})
	_ = b.conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	n, err := b.conn.Conn.Read(make([]byte, 1))
	if n > 0 || !isTimeout(err) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	_ = b.conn.SetReadDeadline(time.Time{})
	if b.guest, err = guest.Connect(limited(t, 10*time.Second), b.conn, guest.Options{Configure: true}); err != nil {
		t.Fatal(err)
	}
	b.run("true")
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestAnotherProtocolIsRefusedOnBothSides(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}, silent: true})
	if err := wire.WriteHello(b.conn, wire.Protocol+1, &wire.HostHello{}); err != nil {
		t.Fatal(err)
	}
	protocol, err := wire.ReadHello(b.conn, &wire.GuestHello{})
	if err != nil && protocol != wire.Protocol {
		t.Errorf("protocol %d, %v", protocol, err)
	}
	if code := b.ended(20 * time.Second); code != guest.ExitProtocol {
		t.Errorf("exit %d", code)
	}
}

func TestBytesThatAreNoGreetingEndAnOwnedSandbox(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}, silent: true})
	if _, err := io.WriteString(b.conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if code := b.ended(20 * time.Second); code != guest.ExitProtocol {
		t.Errorf("exit %d", code)
	}
}

func TestADeadlineEndsEverySandbox(t *testing.T) {
	for _, isOwned := range []bool{true, false} {
		b := newBox(t, want{boot: guest.Boot{Owned: isOwned, Lifetime: 2 * time.Second}})
		start := time.Now()
		p, err := b.guest.Start(limited(t, 10*time.Second), driver.Cmd{Args: []string{"sleep", "31337"}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if code := b.ended(20 * time.Second); code != guest.ExitDeadline {
			t.Errorf("owned %v: exit %d", isOwned, code)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("owned %v: after %v", isOwned, took)
		}
		if e, err := p.Wait(limited(t, 20*time.Second)); driver.CodeOf(err) != driver.CodeGone {
			t.Errorf("the outcome is unknown and must be an error: %+v, %v", e, err)
		}
	}
}

func TestADeadlineCanBeMovedByTheHost(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true, Lifetime: 2 * time.Second, Longest: 5 * time.Minute}})
	ctx := limited(t, 30*time.Second)
	if err := b.guest.Extend(ctx, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	r, err := b.guest.Attest(ctx)
	if left := time.Until(time.Unix(0, r.Deadline)); err != nil || left < 50*time.Second || left > 61*time.Second {
		t.Errorf("%v left, %v", left, err)
	}
	time.Sleep(2500 * time.Millisecond) // beyond the first deadline
	b.run("true")
	for name, at := range map[string]time.Time{"the past": time.Now().Add(-time.Second), "no time at all": {}, "beyond what was granted": time.Now().Add(time.Hour), "the year 3000": time.Now().AddDate(1000, 0, 0)} {
		if err := b.guest.Extend(ctx, at); driver.CodeOf(err) != driver.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.guest.Extend(ctx, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if status := b.ended(20 * time.Second); status != guest.ExitDeadline {
		t.Errorf("exit %d", status)
	}
}

func TestSIGTERMEndsASandboxCleanly(t *testing.T) {
	b := newBox(t, want{})
	b.start(driver.Cmd{Args: []string{"sh", "-c", "trap '' TERM; echo up; sleep 31337"}})
	start := time.Now()
	if _, err := engine.ContainerKill(limited(t, 10*time.Second), b.id, client.ContainerKillOptions{Signal: "TERM"}); err != nil {
		t.Fatal(err)
	}
	if code := b.ended(20 * time.Second); code != guest.ExitEnded {
		t.Errorf("exit %d", code)
	}
	t.Logf("ended after %v", time.Since(start))
}

func TestADetachedSandboxOutlivesItsConnections(t *testing.T) {
	b := newBox(t, want{env: map[string]string{"A": "sandbox"}})
	b.start(driver.Cmd{Args: []string{"sh", "-c", "setsid sleep 31337 & echo up; wait"}})
	b.run("sh", "-c", "setsid sleep 31337 >/dev/null 2>&1 &") // what an ended program left
	d, err := b.guest.Start(limited(t, 20*time.Second), driver.Cmd{Args: []string{"sh", "-c", "sleep 98765; :"}, Timeout: time.Minute, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", "echo dropped; exit 3"}, Detached: true}, nil); err != nil || r.stdout != "" || r.exit.Code != 3 {
		t.Errorf("a detached program watched to its end: %+v, %v", r, err)
	}
	boot := b.guest.Hello().Boot
	_ = b.guest.Close()
	eventually(t, hungUp, "a connection's programs end with it", func() bool { return !strings.Contains(b.top(), "31337") })
	if !strings.Contains(b.top(), "98765") {
		t.Error("the detached program ended with its connection")
	}
	if _, err := d.Wait(limited(t, 20*time.Second)); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("its outcome: %v", err)
	}
	if b.guest, err = b.join(guest.Options{}); err != nil {
		t.Fatal(err)
	}
	if b.guest.Hello().Boot != boot || b.guest.Hello().Owned {
		t.Errorf("hello %+v", b.guest.Hello())
	}
	if r := b.run("sh", "-c", "echo $A"); r.stdout != "sandbox\n" {
		t.Errorf("the sandbox's env for a second connection: %q", r.stdout)
	}
	if _, err := b.join(guest.Options{Configure: true}); driver.CodeOf(err) != driver.CodeConflict {
		t.Errorf("a second configuration: %v", err)
	}
	if err := b.guest.End(limited(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if code := b.ended(20 * time.Second); code != guest.ExitEnded {
		t.Errorf("exit %d", code)
	}
}

func TestAnotherProcessJoinsAnOwnedSandbox(t *testing.T) {
	b := owned(t)
	other, err := b.join(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := runOn(limited(t, 10*time.Second), other, driver.Cmd{Args: []string{"echo", "joined"}}, nil); err != nil || r.stdout != "joined\n" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := other.Start(limited(t, 20*time.Second), driver.Cmd{Args: []string{"true"}, Timeout: time.Minute, Detached: true}); driver.CodeOf(err) != driver.CodeUnsupported {
		t.Errorf("a detached program in an owned sandbox: %v", err)
	}
	_ = other.Close()
	b.run("true") // the owner is not disturbed
}

func TestAFloodOfTheSocketDoesNotKeepTheBridgeOut(t *testing.T) {
	b := owned(t)
	b.start(driver.Cmd{Args: []string{"python3", "-uc", `
import socket
print("up")
held = []
while True:
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try: s.connect("\0sandboxio-guest")
    except OSError: pass
    held.append(s)
    if len(held) > 500: held = []`}})
	start := time.Now()
	other, err := b.join(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("joined in %v", time.Since(start))
	_ = other.Close()
}

func TestTheReportTellsWhatHoldsTheWorkload(t *testing.T) {
	b := owned(t)
	r, err := b.guest.Attest(limited(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	uid := fmt.Sprint(b.uid)
	for what, got := range map[string][2]string{
		"uids":           {fmt.Sprint(r.UIDs), "[" + strings.Join([]string{uid, uid, uid, uid}, " ") + "]"},
		"gids":           {fmt.Sprint(r.GIDs), "[" + strings.Join([]string{uid, uid, uid, uid}, " ") + "]"},
		"seccomp":        {fmt.Sprint(r.Seccomp), "2"},
		"no-new-privs":   {fmt.Sprint(r.NoNewPrivs), "1"},
		"capabilities":   {fmt.Sprint(r.CapInh, r.CapPrm, r.CapEff, r.CapAmb), "0 0 0 0"},
		"bounding set":   {fmt.Sprintf("%x", r.CapBnd), "e0"},
		"descriptors":    {fmt.Sprint(r.FDs), "[0 1 2]"},
		"oom_score_adj":  {fmt.Sprint(r.OOMScoreAdj), "1000"},
		"nproc":          {fmt.Sprint(r.NProc), "192"},
		"core":           {fmt.Sprint(r.Core), "0"},
		"interfaces":     {fmt.Sprint(r.Interfaces), "[lo]"},
		"routes":         {fmt.Sprint(r.Routes), "0"},
		"read-only root": {fmt.Sprint(r.RootReadOnly), "true"},
		"memory":         {fmt.Sprint(r.Cgroup.Memory), fmt.Sprint(512 << 20)},
		"pids":           {fmt.Sprint(r.Cgroup.PIDs), "256"},
		"PID 1":          {fmt.Sprintf("%d %x %d", r.PID1UID, r.PID1CapEff, r.PID1Dumpable), "0 e0 0"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", what, got[0], got[1])
		}
	}
	found := false
	for _, m := range r.Mounts {
		found = found || m.Point == "/work" && m.Type == "tmpfs" && m.Bytes == 64<<20
	}
	if !found {
		t.Errorf("no capped /work in %+v", r.Mounts)
	}
}

// An engine that was started nice hands that down, and nobody in a sandbox may
// take it back.
func TestAGuestOfANiceEngineServes(t *testing.T) {
	for own, nice := range map[int]string{0: "10", 5: "15", 15: "19", 19: "19"} {
		b := newBox(t, want{boot: guest.Boot{Owned: true}, config: func(c *container.Config) {
			c.Entrypoint = append([]string{"nice", "-n", strconv.Itoa(own)}, c.Entrypoint...)
		}})
		if r := b.run("nice"); r.stdout != nice+"\n" {
			t.Errorf("beside PID 1 at %d a program has %q, want %s", own, r.stdout, nice)
		}
	}
}
