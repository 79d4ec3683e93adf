//go:build dockertest

package guest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func owned(t testing.TB) *box {
	t.Helper()
	return newBox(t, want{boot: guest.Boot{Owned: true}})
}

func TestM39TheResultDoesNotWaitForGrandchildrenThatHoldThePipes(t *testing.T) {
	b := owned(t)
	fastest := time.Hour // of them: a busy machine may hold one up
	for _, script := range []string{"sleep 300 & echo hi", "exec sleep infinity & echo hi", "yes > /dev/stderr & echo hi"} {
		r := b.run("sh", "-c", script)
		if r.stdout != "hi\n" || r.exit.Code != 0 || r.took > 10*time.Second {
			t.Errorf("%s: %+v", script, r)
		}
		fastest = min(fastest, r.took)
	}
	if fastest > time.Second {
		t.Errorf("each takes %v and more", fastest)
	}
}

// start starts a program and waits until it has written "up".
func (b *box) start(cmd driver.Cmd) driver.Process {
	b.t.Helper()
	ctx := limited(b.t, 20*time.Second)
	if cmd.Timeout == 0 {
		cmd.Timeout = time.Minute
	}
	p, err := b.guest.Start(ctx, cmd)
	if err != nil {
		b.t.Fatal(err)
	}
	var seen bytes.Buffer
	for !strings.Contains(seen.String(), "up") {
		c, err := p.Recv(ctx)
		if err != nil {
			b.t.Fatalf("%v after %q", err, seen.String())
		}
		seen.Write(c.Data)
	}
	return p
}

func TestAKillTakesTheWholeTreeAndNothingElse(t *testing.T) {
	b := owned(t)
	bystander := b.start(driver.Cmd{Args: []string{"sh", "-c", "echo up; exec sleep 98765"}})
	for name, script := range map[string]string{
		"M40 the program itself":          "echo up; exec sleep 31337",
		"M42 spinning children":           "sh -c 'while :; do :; done # 31337' & sh -c 'while :; do :; done # 31337' & echo up; wait",
		"M43 a background child":          "(yes 31337 >/dev/null &) ; echo up; sleep 99",
		"M44 children with own groups":    "set -m; sleep 31337 & sleep 31337 & echo up; wait",
		"a session of its own":            "setsid sleep 31337 & echo up; wait",
		"a double fork that shed its env": "(setsid env -i sh -c 'setsid sleep 31337 &' &); sleep 0.2; echo up; sleep 99",
		"a live fork bomb of 50":          "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & sleep 31337; }; }; f 5 & sleep 0.3; echo up; sleep 31337",
		"children that fork on":           "sh -c 'while :; do sh -c \"sleep 0.01 # 31337\" & done' >/dev/null 2>&1 & sleep 0.2; echo up; sleep 99",
		"a parent that ignores TERM":      "trap '' TERM HUP INT; sleep 31337 & echo up; wait; sleep 31337",
	} {
		t.Run(name, func(t *testing.T) {
			p := b.start(driver.Cmd{Args: []string{"sh", "-c", script}})
			start := time.Now()
			if err := p.Kill(limited(t, 15*time.Second)); err != nil {
				t.Fatal(err)
			}
			t.Logf("killed in %v", time.Since(start))
			if top := b.top(); strings.Contains(top, "31337") || strings.Contains(top, "sleep 99\n") || strings.Contains(top, "sleep 0.01") {
				t.Errorf("survivors:\n%s", top)
			}
			e, err := p.Wait(limited(t, 20*time.Second))
			if err != nil || e.Code != 137 || e.Signal != "SIGKILL" || e.TimedOut {
				t.Errorf("exit %+v, %v", e, err)
			}
			if err := p.Kill(limited(t, 20*time.Second)); err != nil {
				t.Errorf("a second kill: %v", err)
			}
		})
	}
	if !strings.Contains(b.top(), "sleep 98765") {
		t.Error("the bystander is gone")
	}
	_ = bystander
}

func TestAKillAfterTheExitTakesWhatWasLeftBehind(t *testing.T) {
	b := owned(t)
	p := b.start(driver.Cmd{Args: []string{"sh", "-c", "sleep 31337 & echo up"}})
	if _, err := p.Wait(limited(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.top(), "sleep 31337") {
		t.Fatal("the background program ended with its parent")
	}
	if err := p.Kill(limited(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if top := b.top(); strings.Contains(top, "sleep 31337") {
		t.Errorf("survivors:\n%s", top)
	}
}

func TestM53M54M58ATimeoutIsEnforcedInside(t *testing.T) {
	b := owned(t)
	start := time.Now()
	r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", "echo partial; setsid sleep 31337 & sleep 31337"}, Timeout: 300 * time.Millisecond}, nil)
	if err != nil || !r.exit.TimedOut || r.exit.Signal != "SIGKILL" || r.stdout != "partial\n" {
		t.Fatalf("%+v, %v", r, err)
	}
	if took := time.Since(start); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if top := b.top(); strings.Contains(top, "31337") {
		t.Errorf("survivors:\n%s", top)
	}
}

func TestACancelledStartLeavesNothing(t *testing.T) {
	b := owned(t)
	for i := range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
		p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"sh", "-c", "setsid sleep 31337 & sleep 31337"}, Timeout: time.Minute})
		cancel()
		if err == nil {
			if err := p.Kill(limited(t, 20*time.Second)); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	}
	if top := b.top(); strings.Contains(top, "31337") {
		t.Errorf("survivors:\n%s", top)
	}
}

func TestM46M47WithoutStdinAProgramReadsNothing(t *testing.T) {
	b := owned(t)
	if r := b.run("cat"); r.exit.Code != 0 || r.stdout != "" || r.took > 10*time.Second {
		t.Errorf("cat: %+v", r)
	}
	if r := b.run("readlink", "/proc/self/fd/0"); r.stdout != "/dev/null\n" {
		t.Errorf("stdin is %q", r.stdout)
	}
	if r := b.run("sh", "-c", "(readlink /proc/self/fd/0 > /work/bg &) ; while [ ! -s /work/bg ]; do sleep 0.01; done; cat /work/bg"); r.stdout != "/dev/null\n" {
		t.Errorf("a background program's stdin is %q", r.stdout)
	}
}

// zeros is n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestM48StdinOfAnySizeArrives(t *testing.T) {
	b := owned(t)
	const size = 100 << 20
	sum := sha256.New()
	_, _ = io.Copy(sum, zeros(size))
	r, err := b.try(driver.Cmd{Args: []string{"sha256sum"}}, zeros(size))
	if err != nil || !strings.HasPrefix(r.stdout, fmt.Sprintf("%x", sum.Sum(nil))) {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestM48AProgramThatReadsNoMoreIsABrokenPipeAndKeepsItsExitCode(t *testing.T) {
	b := owned(t)
	ctx := limited(t, 20*time.Second)
	for name, script := range map[string]string{"it closed stdin": "exec 0<&-; sleep 0.3; exit 7", "it exited": "head -c 10 >/dev/null; exit 7"} {
		p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"sh", "-c", script}, Stdin: true, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(p.Stdin(), zeros(64<<20))
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: writing: %v", name, err)
		}
		if err := p.Stdin().Close(); err != nil {
			t.Errorf("%s: closing: %v", name, err)
		}
		if e, err := p.Wait(ctx); err != nil || e.Code != 7 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestM59BytesAreTheTruth(t *testing.T) {
	b := owned(t)
	if r := b.run("printf", `\377\376\342`); r.stdout != "\xff\xfe\xe2" {
		t.Errorf("output %q", r.stdout)
	}
	r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", `printf %s "$1" "$A"`, "sh", "\xff\x01"}, Env: map[string]string{"A": "\xfe\n\xe2"}}, nil)
	if err != nil || r.stdout != "\xff\x01\xfe\n\xe2" {
		t.Errorf("arguments and env: %q, %v", r.stdout, err)
	}
}

func TestM65OutputWrittenBeforeTheExitIsComplete(t *testing.T) {
	b := owned(t)
	for range 50 {
		if r := b.run("sh", "-c", "echo out; echo err >&2; exit 3"); r.stdout != "out\n" || r.stderr != "err\n" || r.exit.Code != 3 {
			t.Fatalf("%+v", r)
		}
	}
	// A grandchild holds the pipe, and the reader comes so late that at the
	// end of the grace more is in the pipe than anyone took.
	const size = 320_000
	ctx := limited(t, time.Minute)
	p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero; sleep 300 &", size)}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(ctx); err != nil || e.Code != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	time.Sleep(300 * time.Millisecond) // the grace
	n := 0
	for {
		c, err := p.Recv(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n += len(c.Data)
	}
	if n != size {
		t.Errorf("%d bytes of %d", n, size)
	}
}

func TestM67OutOfMemoryIsToldApart(t *testing.T) {
	b := owned(t)
	r := b.run("python3", "-c", "x = bytearray(1 << 30)")
	if r.exit.OOM == nil || !*r.exit.OOM || r.exit.Signal != "SIGKILL" {
		t.Errorf("a hog: %+v", r.exit)
	}
	r = b.run("sh", "-c", "python3 -c 'x = bytearray(1 << 30)'; exit 137")
	if r.exit.OOM == nil || !*r.exit.OOM || r.exit.Code != 137 || r.exit.Signal != "" {
		t.Errorf("a child that was a hog: %+v", r.exit)
	}
	r = b.run("sh", "-c", "kill -9 $$")
	if r.exit.OOM == nil || *r.exit.OOM || r.exit.Code != 137 || r.exit.Signal != "SIGKILL" {
		t.Errorf("a kill that was none: %+v", r.exit)
	}
	// Where two run at a time, the counter cannot tell whose it was.
	beside := b.start(driver.Cmd{Args: []string{"sh", "-c", "echo up; sleep 60"}})
	if r = b.run("python3", "-c", "x = bytearray(1 << 30)"); r.exit.OOM != nil {
		t.Errorf("beside another: %v", *r.exit.OOM)
	}
	_ = beside.Kill(limited(t, 20*time.Second))
}

func TestExitsAreCodesOrSignals(t *testing.T) {
	b := owned(t)
	for script, want := range map[string]driver.Exit{
		"exit 0": {}, "exit 255": {Code: 255}, "kill -TERM $$": {Code: 143, Signal: "SIGTERM"}, "kill -SEGV $$": {Code: 139, Signal: "SIGSEGV"},
		"exit 143": {Code: 143},
	} {
		got := b.run("sh", "-c", script).exit
		if got.OOM = nil; got != want {
			t.Errorf("%s: %+v", script, got)
		}
	}
}

func TestM68AProgramThatCannotRunExits126Or127(t *testing.T) {
	b := owned(t)
	b.run("sh", "-c", "echo x > /work/plain; mkdir /work/dir; printf '#!/no/such\\n' > /work/script; chmod 755 /work/script; printf 'no format' > /work/odd; chmod 755 /work/odd")
	for name, want := range map[string]int{
		"nosuchcmd": 127, "/no/such": 127, "": 127, "./nosuch": 127, "/work/plain": 126, "/work/dir": 126, "./plain": 126, "/work/script": 127, "/work/odd": 126,
	} {
		r := b.run(name)
		if r.exit.Code != want || r.exit.Signal != "" || !strings.Contains(r.stderr, "sandboxio:") {
			t.Errorf("%q: %+v", name, r)
		}
	}
	var e *driver.Error
	if _, err := b.try(driver.Cmd{Args: []string{"true"}, Dir: "/no/such"}, nil); !errors.As(err, &e) || e.Field != "dir" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestM70AnArgvNeedsNoShellAndAPathIsTheCommandsOwn(t *testing.T) {
	b := owned(t)
	if r := b.run("printf", "%s", "$HOME `id` ; *"); r.stdout != "$HOME `id` ; *" {
		t.Errorf("%q", r.stdout)
	}
	b.run("sh", "-c", "mkdir -m 700 /work/bin; printf '#!/bin/sh\\necho mine' > /work/bin/tool; chmod 700 /work/bin/tool")
	r, err := b.try(driver.Cmd{Args: []string{"tool"}, Env: map[string]string{"PATH": "/nowhere:/work/bin"}}, nil)
	if err != nil || r.stdout != "mine\n" {
		t.Errorf("a program only the workload can see: %+v, %v", r, err)
	}
	if r, err := b.try(driver.Cmd{Args: []string{"./tool"}, Dir: "bin"}, nil); err != nil || r.stdout != "mine\n" {
		t.Errorf("from a relative directory: %+v, %v", r, err)
	}
}

func TestM71ALongScriptGoesByStdinAndAnArgumentTooLongSaysSo(t *testing.T) {
	b := owned(t)
	script := "echo start\n" + strings.Repeat("# padding padding padding padding\n", 6000) + "echo end\n"
	r, err := b.try(driver.Cmd{Args: []string{"sh"}}, strings.NewReader(script))
	if err != nil || r.stdout != "start\nend\n" {
		t.Errorf("by stdin: %+v, %v", r, err)
	}
	_, err = b.try(driver.Cmd{Args: []string{"sh", "-c", script}}, nil)
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != driver.CodeInvalid || e.Field != "args" || !strings.Contains(e.Hint, "stdin") {
		t.Errorf("by argument: %v", err)
	}
	if r := b.run("sh", "-c", "#"+strings.Repeat("x", 100<<10)+"\necho long"); r.stdout != "long\n" {
		t.Errorf("100 KiB: %+v", r)
	}
}

func TestM72EachProgramIsAProcessOfItsOwn(t *testing.T) {
	b := owned(t)
	b.run("sh", "-c", "set -e; cd /; export A=1; false")
	r := b.run("sh", "-c", `echo "$A:$PWD"; ps -o sid= -p $$ >/dev/null 2>&1; exit 0`)
	if r.stdout != ":/work\n" {
		t.Errorf("%+v", r)
	}
}

func TestM99M100M101EnvArrivesByteForByteAndTheLastWins(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}, env: map[string]string{"FROM": "sandbox", "S": "sandbox", "C": "sandbox", "X": "sandbox"}})
	env := map[string]string{"C": "cmd", "X": "cmd", "A": "b=c", "NL": "x\ny", "EMPTY": "", "Q": `"quoted" 'single' $HOME \n` + "`id`", "B64": "aGk="}
	r, err := b.try(driver.Cmd{
		Args: []string{"python3", "-c", "import os,sys; sys.stdout.buffer.write(b'\\0'.join(k+b'='+v for k,v in sorted(os.environb.items())))"},
		Env:  env, Secrets: map[string]driver.Secret{"X": driver.NewSecret("secret")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for kv := range strings.SplitSeq(r.stdout, "\x00") {
		k, v, _ := strings.Cut(kv, "=")
		got[k] = v
	}
	env["X"], env["FROM"], env["S"], env["HOME"] = "secret", "sandbox", "sandbox", "/work"
	for k, v := range env {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	if !strings.Contains(got["PATH"], "/usr/bin") {
		t.Errorf("PATH is %q", got["PATH"])
	}
	for name, value := range map[string]string{"": "x", "A=B": "x", "NUL": "a\x00b", "A\x00": "x"} {
		_, err := b.try(driver.Cmd{Args: []string{"true"}, Env: map[string]string{name: value}}, nil)
		if driver.CodeOf(err) != driver.CodeInvalid {
			t.Errorf("%q=%q: %v", name, value, err)
		}
	}
	_, err = b.try(driver.Cmd{Args: []string{"true"}, Secrets: map[string]driver.Secret{"S": driver.NewSecret("canary-\x00-42")}}, nil)
	if driver.CodeOf(err) != driver.CodeInvalid || strings.Contains(err.Error(), "canary") {
		t.Errorf("a secret with NUL: %v", err)
	}
}

func TestASecretReachesTheProgramAndNoConfiguration(t *testing.T) {
	const canary = "canary-5e1d7c"
	b := owned(t)
	r, err := b.try(driver.Cmd{Args: []string{"sh", "-c", `printf %s "$S" | sha256sum`}, Secrets: map[string]driver.Secret{"S": driver.NewSecret(canary)}}, nil)
	if err != nil || !strings.HasPrefix(r.stdout, fmt.Sprintf("%x", sha256.Sum256([]byte(canary)))) {
		t.Fatalf("%+v, %v", r, err)
	}
	res, err := engine.ContainerInspect(limited(t, 20*time.Second), b.id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintf("%+v %s", res.Container, res.Raw), canary) || strings.Contains(b.conn.said(), canary) {
		t.Error("the secret is in the container's configuration or log")
	}
	if r := b.run("sh", "-c", "cat /proc/1/environ /proc/1/cmdline; env"); strings.Contains(r.stdout, canary) {
		t.Error("the next program sees it")
	}
}

func TestTheWorkloadCannotTouchPID1(t *testing.T) {
	b := owned(t)
	for _, script := range []string{
		"kill -9 1", "kill -STOP 1", "kill -TERM 1", "cat /proc/1/environ", "cat /proc/1/mem", "ls /proc/1/fd", "ls /proc/1/root/", "echo 1000 > /proc/1/oom_score_adj",
		"renice 19 -p 1", "taskset -p 1 1", "prlimit --pid 1 --nofile=1:1", "/.sandboxio/sandboxio-guest bridge </dev/null", "/.sandboxio/sandboxio-guest init", "echo x > /.sandboxio/y", "echo x > /etc/y",
	} {
		if r := b.run("sh", "-c", script); r.exit.Code == 0 {
			t.Errorf("%s succeeded: %+v", script, r)
		}
	}
	r := b.run("python3", "-c", `
import socket
s = socket.socket(socket.AF_UNIX); s.connect("\0sandboxio-guest"); s.sendall(b"sandbxio\0\1"); print(len(s.recv(100)))`)
	if r.stdout != "0\n" && !strings.Contains(r.stderr, "ConnectionResetError") && !strings.Contains(r.stderr, "BrokenPipe") {
		t.Errorf("the socket said something: %+v", r)
	}
	if r := b.run("ls", "/proc/self/fd"); r.stdout != "0\n1\n2\n3\n" { // 3 is ls's own
		t.Errorf("descriptors: %q", r.stdout)
	}
	if r := b.run("python3", "-c", "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0sandboxio-guest')"); r.exit.Code == 0 {
		t.Error("the socket's name could be taken")
	}
}

func TestAForkBombLeavesTheGuestAtWork(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true, NProc: 100}})
	ctx := limited(t, 60*time.Second)
	p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"python3", "-c", "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := p.Recv(ctx); err != nil {
				return
			}
		}
	}()
	eventually(t, 20*time.Second, "the bomb is live", func() bool { return strings.Count(b.top(), "os.fork") > 80 })
	full := 0
	for range 10 {
		r, err := b.try(driver.Cmd{Args: []string{"echo", "still here"}}, nil)
		switch {
		case err == nil && r.stdout == "still here\n":
		case driver.CodeOf(err) == driver.CodeExhausted:
			full++
		default:
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	start := time.Now()
	if err := p.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of 10 execs found no room; the bomb was killed in %v", full, time.Since(start))
	if r := b.run("echo", "after"); r.stdout != "after\n" {
		t.Errorf("%+v", r)
	}
}

func TestAFullSandboxSaysSo(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true, NProc: 8}})
	ctx := limited(t, 20*time.Second)
	// The kernel counts before the new one is the workload's: one more fits,
	// even beside a fork bomb.
	for range 8 + 2 {
		if _, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"sleep", "60"}, Timeout: time.Minute}); err != nil {
			if driver.CodeOf(err) != driver.CodeExhausted || !strings.Contains(err.Error(), "resources.pids") {
				t.Errorf("%v", err)
			}
			return
		}
	}
	t.Error("ten programs run under a limit of eight")
}

func TestAWorkloadThatStopsAllItCanDoesNotStopTheGuest(t *testing.T) {
	b := owned(t)
	p := b.start(driver.Cmd{Args: []string{"python3", "-uc", `
import os, signal, ctypes
kill = ctypes.CDLL(None).kill
print("up")
me = os.getpid()
while True: # new processes have the next pids: stop them as early as can be
    for pid in range(me + 1, me + 400): kill(pid, signal.SIGSTOP)`}})
	ended, stopped := 0, 0
	for range 40 {
		r, err := b.try(driver.Cmd{Args: []string{"true"}, Timeout: 200 * time.Millisecond}, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case r.exit.TimedOut, r.exit.Signal == "SIGKILL":
			stopped++
		default:
			ended++
		}
	}
	t.Logf("%d programs were stopped, %d ended", stopped, ended)
	if err := p.Kill(limited(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if r := b.run("echo", "after"); r.stdout != "after\n" {
		t.Errorf("%+v", r)
	}
}

func TestMemoryHogsDoNotTakePID1(t *testing.T) {
	b := owned(t)
	r := b.run("python3", "-c", `
import os, time
for i in range(100):
    if os.fork() == 0:
        x = b"x" * (20 << 20)
        time.sleep(3)
        os._exit(0)
for i in range(100): os.wait()`)
	if r.exit.OOM == nil || !*r.exit.OOM {
		t.Errorf("the memory cap was not reached: %+v", r)
	}
	if r := b.run("echo", "after"); r.stdout != "after\n" {
		t.Errorf("%+v", r)
	}
}

func TestM76ASlowReaderStopsItsProgramAndNobodyElse(t *testing.T) {
	b := owned(t)
	ctx := limited(t, 60*time.Second)
	var stalled []driver.Process
	for range 50 {
		p, err := b.guest.Start(ctx, driver.Cmd{Args: []string{"sh", "-c", "exec cat /dev/zero"}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, p)
	}
	time.Sleep(300 * time.Millisecond) // let them fill what they can
	var worst time.Duration
	for range 50 {
		r := b.run("true")
		worst = max(worst, r.took)
	}
	r := b.run("head", "-c", "67108864", "/dev/zero")
	if len(r.stdout) != 64<<20 {
		t.Errorf("%d bytes beside them", len(r.stdout))
	}
	status := b.run("grep", "VmRSS", "/proc/1/status")
	t.Logf("worst exec beside 50 stalled readers %v; PID 1 %s", worst, strings.TrimSpace(status.stdout))
	if worst > 5*time.Second {
		t.Errorf("a neighbour waited %v", worst)
	}
	for _, p := range stalled {
		if err := p.Kill(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyProgramsAtATime(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true, NProc: 900}})
	errs := make(chan error, 200)
	for i := range cap(errs) {
		go func() {
			r, err := runOn(limited(t, 60*time.Second), b.guest, driver.Cmd{Args: []string{"sh", "-c", fmt.Sprintf("sleep 0.5; head -c 100000 /dev/zero; exit %d", i)}}, nil)
			if err == nil && (r.exit.Code != i || len(r.stdout) != 100000) {
				err = fmt.Errorf("%d: exit %+v with %d bytes", i, r.exit, len(r.stdout))
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
