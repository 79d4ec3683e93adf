//go:build dockertest

package guest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestM44OfTwoDoubleForksAKillTakesItsOwnOnly(t *testing.T) {
	b := owned(t)
	daemon := func(mark string) driver.Process {
		return b.start(driver.Cmd{Args: []string{"sh", "-c", "(setsid sh -c 'setsid sleep " + mark + " & exec sleep " + mark + "' >/dev/null 2>&1 &) ; echo up; sleep 99"}})
	}
	first, second := daemon("31337"), daemon("98765")
	eventually(t, 20*time.Second, "both forks of both have begun", func() bool {
		top := b.top()
		return strings.Count(top, " sleep 31337\n") == 2 && strings.Count(top, " sleep 98765\n") == 2
	})
	if err := first.Kill(limited(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if top := b.top(); strings.Contains(top, "31337") || strings.Count(top, " sleep 98765\n") != 2 {
		t.Errorf("after the first was killed:\n%s", top)
	}
	if err := second.Kill(limited(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if top := b.top(); strings.Contains(top, "98765") || strings.Contains(top, "sleep 99") {
		t.Errorf("survivors:\n%s", top)
	}
}

func TestM45AHeredocEndsWhereItSays(t *testing.T) {
	b := owned(t)
	for script, want := range map[string]string{
		"cat <<'EOF'\nx $HOME\n  EOF\nEOF\necho after":      "x $HOME\n  EOF\nafter\n",
		"cat <<-EOF\n\ty\n\tEOF\necho after":                "y\nafter\n",
		"sh <<'A'\ncat <<'B'\ninner\nB\nA\nprintf 'no end'": "inner\nno end",
	} {
		if r := b.run("sh", "-c", script); r.stdout != want || r.exit.Code != 0 || r.took > 20*time.Second {
			t.Errorf("as an argument: %q: %+v", script, r)
		}
		if r, err := b.try(driver.Cmd{Args: []string{"sh"}}, strings.NewReader(script)); err != nil || r.stdout != want {
			t.Errorf("by stdin: %q: %+v, %v", script, r, err)
		}
	}
}

func TestM55M56ATimeoutOfZeroOrLessIsRefusedInside(t *testing.T) {
	b := owned(t)
	for _, timeout := range []time.Duration{0, -time.Second} {
		_, err := b.guest.Start(limited(t, 20*time.Second), driver.Cmd{Args: []string{"true"}, Timeout: timeout})
		var e *driver.Error
		if !errors.As(err, &e) || e.Code != driver.CodeInvalid || e.Field != "timeout" {
			t.Errorf("%v: %v", timeout, err)
		}
	}
}

// An image without a shell, or anything else.
func TestM70AnImageWithNothingInItRunsAnArgvAndSaysThatThereIsNoShell(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, dir := range []string{"work", "tmp", "run"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := limited(t, 60*time.Second)
	res, err := engine.ImageImport(ctx, client.ImageImportSource{Source: &archive, SourceName: "-"}, "", client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(res)
	_ = res.Close()
	id := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(string(said))
	if err != nil || id == "" {
		t.Fatal(string(said), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if _, err := engine.ImageRemove(ctx, id, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	t.Run("inside", func(t *testing.T) {
		b := newBox(t, want{boot: guest.Boot{Owned: true}, image: id})
		if r := b.run(guest.Binary, "true"); r.exit.Code != 0 || r.stderr != "" {
			t.Errorf("a static program: %+v", r)
		}
		for _, shell := range []string{"sh", "/bin/sh", "bash"} {
			if r := b.run(shell, "-c", "echo hi"); r.exit.Code != 127 || !strings.Contains(r.stderr, "sandboxio: "+shell+": not found") {
				t.Errorf("%s: %+v", shell, r)
			}
		}
		if _, err := b.guest.Files().Stat(limited(t, 10*time.Second), "/work"); err != nil {
			t.Errorf("files: %v", err)
		}
	})
}

func TestM71M100AValueOfNearly128KiBArrivesAndALongerOneSaysSo(t *testing.T) {
	b := owned(t)
	value := strings.Repeat("v", 127<<10)
	r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", `printf %s "$A" | wc -c`}, Env: map[string]string{"A": value + "=\n"}}, nil)
	if err != nil || strings.TrimSpace(r.stdout) != strconv.Itoa(len(value)+2) {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = b.try(driver.Cmd{Args: []string{"true"}, Env: map[string]string{"A": strings.Repeat("v", 128<<10)}}, nil)
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != driver.CodeInvalid || !strings.Contains(e.Hint, "file") {
		t.Errorf("one too long: %v", err)
	}
}

func TestM73M74M75ADetachedProgramLivesToItsOwnDeadline(t *testing.T) {
	b := newBox(t, want{})
	const timeout = 7 * time.Second // over what a silent owner is given
	start := time.Now()
	if _, err := b.guest.Start(limited(t, 20*time.Second), driver.Cmd{Args: []string{"sh", "-c", "setsid sleep 31337 & sleep 31337"}, Timeout: timeout, Detached: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.guest.Start(limited(t, 20*time.Second), driver.Cmd{Args: []string{"sleep", "98765"}, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	_ = b.guest.Close()
	eventually(t, hungUp, "what is not detached ends with its connection", func() bool { return !strings.Contains(b.top(), "98765") })
	eventually(t, timeout+20*time.Second, "it ended by its own deadline", func() bool { return !strings.Contains(b.top(), "31337") })
	if lived := time.Since(start); lived < timeout {
		t.Errorf("it lived for %v of %v", lived, timeout)
	}
}

func TestM75AProgramThatIsSilentIsNotIdle(t *testing.T) {
	b := owned(t)
	r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", "sleep 6; echo still here"}}, nil) // over what a silent owner is given
	if err != nil || r.stdout != "still here\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestM77AStalledStreamIsLeftByItsContextAndTheProgramKilled(t *testing.T) {
	b := owned(t)
	p := b.start(driver.Cmd{Args: []string{"sh", "-c", "echo up; exec sleep 31337"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := p.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("recv: %v", err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("they took %v", took)
	}
	if err := p.Kill(limited(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(limited(t, 20*time.Second)); err != nil || e.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestM79AGibibyteOfOutputTakesNoMemory(t *testing.T) {
	b := owned(t)
	idle := rss(t, b)
	ctx := limited(t, 5*time.Minute)
	p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"head", "-c", "1073741824", "/dev/zero"}, Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, peak, inside := 0, before.HeapAlloc, idle
	for next := 0; ; {
		c, err := p.Recv(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n += len(c.Data); n >= next {
			next += 128 << 20
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak, inside = max(peak, now.HeapAlloc), max(inside, rss(t, b))
		}
	}
	if e, err := p.Wait(ctx); n != 1<<30 || err != nil || e.Code != 0 {
		t.Errorf("%d bytes, %+v, %v", n, e, err)
	}
	t.Logf("host: heap %d to %d KiB; PID 1: %.1f MiB idle, %.1f at most, %.1f after", before.HeapAlloc>>10, peak>>10, idle, inside, rss(t, b))
	if peak > before.HeapAlloc+8<<20 { // what may come unread is 4 MiB
		t.Errorf("the host's heap grew from %d to %d KiB", before.HeapAlloc>>10, peak>>10)
	}
	if idle > 8 || inside > 24 {
		t.Errorf("PID 1 has %.1f MiB idle, %.1f under load", idle, inside)
	}
}

// Readers that go away, with their whole connection, leave nothing.
func TestM76AbandonedReadersLeaveNothing(t *testing.T) {
	b := newBox(t, want{})
	for range 5 {
		other, err := b.join(guest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := other.Start(limited(t, 10*time.Second), driver.Cmd{Args: []string{"yes", "31337"}, Timeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		_ = other.Close()
	}
	eventually(t, 10*time.Second, "their programs end", func() bool { return !strings.Contains(b.top(), "31337") })
	eventually(t, 20*time.Second, "only PID 1 and those that count are left", func() bool {
		n, err := strconv.Atoi(strings.TrimSpace(b.run("sh", "-c", "ls /proc | grep -c '^[0-9]'").stdout))
		return err == nil && n <= 6
	})
	if got := rss(t, b); got > 32 {
		t.Errorf("PID 1 has %.1f MiB", got)
	}
}
