package pid1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

const probeWithin = 10 * time.Second

// attest lets a child on the workload's path measure itself, and adds what
// only PID 1 knows.
func (g *guest) attest(w io.Writer) {
	var r wire.Report
	if err := g.probe(&r); errors.Is(err, io.EOF) { // it died before its first word
		answer(w, &wire.Failure{Code: "exhausted", Text: "the sandbox has no room for the process that measures it",
			Hint: "end some of its processes, or raise resources.pids or resources.memory_mib"})
		return
	} else if err != nil {
		answer(w, failure(err, "probe", ""))
		return
	}
	r.PID1UID = uint32(os.Getuid())
	if st, err := os.ReadFile("/proc/self/status"); err == nil {
		_, _ = fmt.Sscanf(statusField(st, "CapEff"), "%x", &r.PID1CapEff)
	}
	r.PID1Dumpable = wire.Unknown
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err == nil {
		r.PID1Dumpable = int64(n)
	}
	r.Owned = g.boot.Owned
	g.mu.Lock()
	r.Deadline = g.deadline.UnixNano()
	g.mu.Unlock()
	answer(w, nil)
	_ = wire.Write(w, &r)
}

func (g *guest) probe(r *wire.Report) error {
	h, err := g.helper("probe", false)
	if err != nil {
		return err
	}
	defer h.close()
	_ = h.out.SetReadDeadline(time.Now().Add(probeWithin))
	return wire.ReadReply(h.out, r) // as hostile as a workload's output
}

func statusField(status []byte, name string) string {
	for line := range bytes.Lines(status) {
		if k, v, _ := bytes.Cut(line, []byte(":")); string(k) == name {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// probe writes a Report about this very process.
func probe(w io.Writer) error {
	r, err := measure()
	if err != nil {
		return err
	}
	return wire.Write(w, r)
}

func measure() (*wire.Report, error) {
	fds, err := openFDs()
	if err != nil {
		return nil, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	r := &wire.Report{FDs: fds, OOMScoreAdj: readNumber("/proc/self/oom_score_adj")}
	for _, f := range []struct {
		name string
		to   *[]uint32
	}{{"Uid", &r.UIDs}, {"Gid", &r.GIDs}, {"Groups", &r.Groups}} {
		for s := range strings.FieldsSeq(statusField(status, f.name)) {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil {
				return nil, err
			}
			*f.to = append(*f.to, uint32(n))
		}
	}
	for _, f := range []struct {
		name string
		to   *uint64
	}{{"CapInh", &r.CapInh}, {"CapPrm", &r.CapPrm}, {"CapEff", &r.CapEff}, {"CapBnd", &r.CapBnd}, {"CapAmb", &r.CapAmb}} {
		n, err := strconv.ParseUint(statusField(status, f.name), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		*f.to = n
	}
	r.Seccomp = kernelSays(unix.PR_GET_SECCOMP, number(statusField(status, "Seccomp")))
	r.NoNewPrivs = kernelSays(unix.PR_GET_NO_NEW_PRIVS, number(statusField(status, "NoNewPrivs")))
	for _, l := range []struct {
		which int
		to    *int64
	}{{unix.RLIMIT_NPROC, &r.NProc}, {unix.RLIMIT_NOFILE, &r.NoFile}, {unix.RLIMIT_CORE, &r.Core}, {unix.RLIMIT_FSIZE, &r.FSize}} {
		var have unix.Rlimit
		*l.to = wire.Unknown
		if err := unix.Getrlimit(l.which, &have); err == nil {
			*l.to = int64(min(have.Cur, 1<<62))
			if have.Cur == unix.RLIM_INFINITY {
				*l.to = wire.Unlimited
			}
		}
	}
	r.Doors = openDoors()
	surroundings(r)
	return r, nil
}

// kernelSays asks by prctl where /proc does not know, as under gVisor. A
// filter may kill who asks for its mode, so that /proc is asked first.
func kernelSays(option int, known int64) int64 {
	if known != wire.Unknown || option == unix.PR_GET_SECCOMP {
		return known
	}
	if n, err := unix.PrctlRetInt(option, 0, 0, 0, 0); err == nil {
		return int64(n)
	}
	return wire.Unknown
}

func number(s string) int64 {
	if s == "max" {
		return wire.Unlimited
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return wire.Unknown
	}
	return n
}

func readNumber(name string) int64 {
	b, err := os.ReadFile(name)
	if err != nil {
		return wire.Unknown
	}
	return number(strings.TrimSpace(string(b)))
}

// openFDs lists the descriptors this process was given: one that came through
// an exec has no close-on-exec flag, and every one that Go opens has.
func openFDs() ([]int64, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		fd, err := strconv.ParseInt(e.Name(), 10, 32)
		if err != nil {
			return nil, err
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			out = append(out, fd)
		}
	}
	return out, nil
}

// openDoors tries what a sandbox's seccomp profile should refuse. Each try
// acts on this short-lived process only.
func openDoors() []string {
	var out []string
	try := func(name string, open bool) {
		if open {
			out = append(out, name)
		}
	}
	for name, family := range map[string]int{"vsock": unix.AF_VSOCK, "packet": unix.AF_PACKET, "alg": unix.AF_ALG} {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if family == unix.AF_VSOCK && err != nil {
			fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		}
		if family == unix.AF_ALG && err != nil {
			fd, err = unix.Socket(family, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		}
		if err == nil {
			_ = unix.Close(fd)
		}
		try(name, err == nil)
	}
	// Each with arguments that an open door answers with EFAULT or EINVAL.
	for name, nr := range map[string]uintptr{"io_uring": unix.SYS_IO_URING_SETUP, "bpf": unix.SYS_BPF, "userfaultfd": unix.SYS_USERFAULTFD, "perf": unix.SYS_PERF_EVENT_OPEN, "keyctl": unix.SYS_KEYCTL} {
		_, _, errno := unix.Syscall6(nr, ^uintptr(0), 0, 0, 0, 0, 0)
		try(name, errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	// A Go program has threads, which the kernel answers with EINVAL, after
	// any filter.
	try("userns", (errno == 0 || errno == unix.EINVAL) && readNumber("/proc/sys/user/max_user_namespaces") != 0)
	return out
}
