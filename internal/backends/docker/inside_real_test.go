//go:build dockertest

package docker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// doors tries what the seccomp profile takes away, as the workload's user,
// and prints the name of each call with the error's name. Numbers are those
// of x86-64 and arm64, which share the ones above 424.
const doors = `
import ctypes, errno, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
x = platform.machine() == "x86_64"
def call(name, n, *args):
    r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(a) for a in args])
    print(name, "open" if r >= 0 else errno.errorcode[ctypes.get_errno()])
def sock(name, *args):
    try:
        socket.socket(*args).close(); print(name, "open")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
call("io_uring_setup", 425, 1, 0)
call("keyctl", 250 if x else 219, 0, -3, 0)
call("add_key", 248 if x else 217, 0, 0, 0, 0, 0)
call("bpf", 321 if x else 280, 0, 0, 0)
call("perf_event_open", 298 if x else 241, 0, 0, -1, -1, 0)
call("userfaultfd", 323 if x else 282, 0)
call("unshare_user", 272 if x else 97, 0x10000000)
call("setns", 308 if x else 268, 0, 0)
call("mount", 165 if x else 40, 0, 0, 0, 0, 0)
call("open_tree", 428, -100, 0, 0)
call("fsopen", 430, 0, 0)
call("kexec_load", 246 if x else 104, 0, 0, 0, 0)
call("init_module", 175 if x else 105, 0, 0, 0)
call("name_to_handle_at", 303 if x else 264, -100, 0, 0, 0, 0)
call("pidfd_getfd", 438, 0, 0, 0)
call("clone_newuser", 56 if x else 220, 0x10000000 | 17, 0, 0, 0, 0)
call("pair_AF_VSOCK", 53 if x else 199, 40, 1, 0, 0)
sock("AF_VSOCK", 40, socket.SOCK_STREAM)
sock("AF_ALG", 38, socket.SOCK_SEQPACKET)
sock("AF_PACKET", 17, socket.SOCK_RAW)
sock("AF_KEY", 15, socket.SOCK_RAW, 2)
sock("AF_BLUETOOTH", 31, socket.SOCK_RAW)
sock("AF_UNIX", socket.AF_UNIX, socket.SOCK_STREAM)
sock("AF_INET", socket.AF_INET, socket.SOCK_STREAM)
[end.close() for end in socket.socketpair()]
`

func TestRealDoorsAreClosed(t *testing.T) {
	b, image := engine(t)
	sb := create(t, b, realSpec(t, image))
	out, _ := run(t, sb, "python3", "-c", doors)
	seen := 0
	for line := range strings.Lines(out) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen++
		switch {
		case name == "AF_UNIX" || name == "AF_INET": // the control: the script can tell open from closed
			if state != "open" {
				t.Errorf("%s is %s", name, state)
			}
		case state != "EPERM":
			t.Errorf("%s is %s, not refused by the filter", name, state)
		}
	}
	if seen != 24 {
		t.Errorf("%d answers:\n%s", seen, out)
	}
	t.Log(strings.ReplaceAll(out, "\n", "; "))

	// The same script under the engine's defaults finds doors open: the
	// proof can fail.
	loose, err := raw(t, b).ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: looseConfig(image, "python3", "-c", doors)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.remove(t.Context(), raw(t, b), loose.ID); err != nil {
			t.Error(err)
		}
	}()
	if said := runRaw(t, b, loose.ID); !strings.Contains(said, "open") || strings.Count(said, "EPERM") >= 22 {
		t.Errorf("the engine's own profile closes as much, so this shows nothing:\n%s", said)
	}
}

func TestReal32BitCallsAreNotAnswered(t *testing.T) {
	b, image := engine(t)
	sb := create(t, b, realSpec(t, image))
	// int 0x80, getpid of the 32-bit table, from an executable page.
	script := `
import ctypes, mmap, platform
if platform.machine() != "x86_64":
    raise SystemExit(159)
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("b814000000cd80c3"))
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print("getpid by the 32-bit door:", f(), flush=True)
`
	out, exit := run(t, sb, "python3", "-c", script)
	if strings.Contains(out, "door: ") && !strings.Contains(out, "door: -") || exit.Code == 0 && out == "" {
		t.Errorf("answered: %q %+v", out, exit)
	}
	t.Logf("%q %+v", out, exit)
}

// Deny is of names too: whom a program asks by itself answers as little (M34).
func TestRealM34NothingIsReached(t *testing.T) {
	b, image := engine(t)
	sb := create(t, b, realSpec(t, image))
	out, _ := run(t, sb, "python3", "-c", `
import os, socket, errno
print("interfaces", sorted(n for _, n in socket.if_nameindex()))
for host, port in (("169.254.169.254", 80), ("1.1.1.1", 53), ("172.17.0.1", 2375), ("10.0.0.1", 443)):
    s = socket.socket(); s.settimeout(3)
    try:
        s.connect((host, port)); print(host, "REACHED")
    except OSError as e:
        print(host, errno.errorcode.get(e.errno, str(e)))
try:
    socket.getaddrinfo("example.com", 80); print("name RESOLVED")
except OSError as e:
    print("name refused")
`)
	if strings.Contains(out, "REACHED") || strings.Contains(out, "RESOLVED") || !strings.Contains(out, "interfaces ['lo']") || strings.Count(out, "ENETUNREACH") != 4 {
		t.Errorf("%s", out)
	}
	for _, server := range []string{"127.0.0.11", "127.0.0.1", "172.17.0.1", "1.1.1.1"} {
		for kind, n := range map[string]int{"A": 1, "TXT": 16} {
			if open, what := attempt(t, sb, fmt.Sprintf("dns(%q, %q, %d)", server, "example.com", n)); open {
				t.Errorf("%s asked for %s: %s", server, kind, what)
			}
		}
		if open, what := attempt(t, sb, fmt.Sprintf(`tcp(%q, 53, b"\0\x0c" + bytes(12))`, server)); open {
			t.Errorf("%s over TCP: %s", server, what)
		}
	}
}

func TestRealDiskIsCapped(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Resources.DiskMiB, spec.Resources.MemoryMiB = 32, 64
	sb := create(t, b, spec)
	// Fill every writable place there is; the sum stays within the cap.
	out := sh(t, sb, `
for d in /work /tmp /run /dev/shm; do
  dd if=/dev/zero of=$d/fill bs=64k 2>&1 | grep -o 'No space left on device' | head -1
done
du -sk /work /tmp /run /dev/shm | awk '{s+=$1} END {print "sum", s}'
for f in /x /etc/x /usr/x /root/x /dev/x /.sandboxio/x /var/x /proc/x /sys/x; do
  (echo x > $f) 2>/dev/null && echo "WRITABLE $f"
done
`)
	if strings.Count(out, "No space left on device") != 4 || strings.Contains(out, "WRITABLE") {
		t.Errorf("%s", out)
	}
	var sum int
	if _, after, ok := strings.Cut(out, "sum "); !ok {
		t.Errorf("no sum: %s", out)
	} else if _, err := fmt.Sscan(after, &sum); err != nil || sum > 32<<10 || sum < 30<<10 {
		t.Errorf("%d KiB were written, the cap is %d", sum, 32<<10)
	}
	t.Logf("%d KiB of %d", sum, 32<<10)
	if out := sh(t, sb, `find / -type d -writable -not -path '/proc/*' 2>/dev/null | sort`); strings.Join(strings.Fields(out), " ") != "/dev/mqueue /dev/shm /run /tmp /work" {
		t.Errorf("writable: %s", out)
	}
}

func TestRealMemoryIsCapped(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Resources.DiskMiB, spec.Resources.MemoryMiB = 16, 48
	sb := create(t, b, spec)
	_, exit := run(t, sb, "python3", "-c", "b = bytearray(300 << 20)")
	if exit.OOM == nil || !*exit.OOM || exit.Signal != "SIGKILL" {
		t.Errorf("%+v", exit)
	}
	if out, exit := run(t, sb, "echo", "alive"); out != "alive\n" || exit.OOM == nil || *exit.OOM {
		t.Errorf("after it: %q %+v", out, exit)
	}
}

func TestRealProcessesAreCapped(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Resources.PIDs = 64
	sb := create(t, b, spec)
	out := sh(t, sb, `i=0; while [ $i -lt 200 ]; do sleep 20 & i=$((i+1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l`)
	var n int
	if _, err := fmt.Sscan(strings.TrimSpace(out), &n); err == nil && n > 64 {
		t.Errorf("%d processes", n)
	}
	// A bomb, with the guest answering after it.
	_, _ = run(t, sb, "sh", "-c", `timeout -s KILL 3 sh -c 'b() { b | b & b; }; b' >/dev/null 2>&1; true`)
	ctx := t.Context()
	if err := sb.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if !isGone(t, b, sb.Status().ID) {
		t.Error("still there")
	}
}

func TestRealCPUIsCapped(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Resources.CPUMillis = 200
	sb := create(t, b, spec)
	out, _ := run(t, sb, "python3", "-c", `
import os, time
def used(): return sum(os.times()[:2])
t, before = time.monotonic(), used()
while time.monotonic() - t < 2: pass
print((used() - before) / (time.monotonic() - t))`)
	var share float64
	if _, err := fmt.Sscan(out, &share); err != nil || share > 0.3 || share < 0.05 {
		t.Errorf("it had %q of a core, the cap is 0.2", out)
	}
}

func TestRealLifetimeEndsTheSandbox(t *testing.T) {
	b, image := engine(t)
	for _, detached := range []bool{false, true} {
		spec := realSpec(t, image)
		spec.Detached, spec.Lifetime = detached, 3*time.Second
		began := time.Now()
		sb := create(t, b, spec)
		p, err := sb.Start(t.Context(), driver.Cmd{Args: []string{"sleep", "600"}, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_ = p
		eventually(t, 8*time.Second, "the sandbox ends by itself", func() bool { return isGone(t, b, sb.Status().ID) })
		if d := time.Since(began); d < 2500*time.Millisecond {
			t.Errorf("it ended after %v already", d)
		}
	}
}

func TestRealAWritableRootWithoutAQuotaIsRefused(t *testing.T) {
	b, image := engine(t)
	opts := b.opts
	opts.StorageQuota = true // somebody says so, and it is not true of this engine
	quota, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer quota.Close()
	spec := realSpec(t, image)
	spec.Profile = driver.Compat
	if _, err := quota.Create(t.Context(), spec); !errors.Is(err, driver.CodeUnsupported) {
		t.Errorf("%v", err)
	}
}
