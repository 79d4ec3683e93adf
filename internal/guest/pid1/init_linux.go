package pid1

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// threadsAhead are started before anything can fill the PID cap: a Go program
// that cannot start a thread when it needs one dies.
const threadsAhead = 24

// guest is the state of PID 1.
type guest struct {
	boot   wire.Boot
	id     string // of this run
	reaper *reaper
	oom    *oomCounter
	marks  atomic.Uint32      // last one given out
	owner  io.ReadWriteCloser // nil in a detached sandbox
	calm   calm

	moved  chan struct{} // the deadline was
	ending atomic.Bool

	mu         sync.Mutex
	deadline   time.Time
	latest     time.Time // beyond which the deadline is not moved
	configured bool
	env        [][2]string // the sandbox's
	door       *door       // nil while programs cannot connect to anything
	running    map[*execution]struct{}
}

// run is PID 1. It returns only if the sandbox cannot begin.
func run(boot wire.Boot) error {
	if os.Getpid() != 1 {
		return errors.New("init must be PID 1")
	}
	// Also on one core: a workload can hold up the start of a program, for
	// which Go keeps one of these occupied. More would be woken for nothing.
	runtime.GOMAXPROCS(2)
	debug.SetMemoryLimit(memoryLimit)
	g := &guest{boot: boot, moved: make(chan struct{}, 1), running: map[*execution]struct{}{}}
	g.live(boot.Lifetime)
	g.marks.Store(markBase)
	var id [16]byte
	if _, err := unix.Getrandom(id[:], 0); err != nil {
		return err
	}
	g.id = fmt.Sprintf("%x", id)

	adj, err := openOOMAdj() // before it is too late to open
	if err != nil {
		return err
	}
	g.reaper = newReaper(adj, boot.NProc)
	g.oom = findOOMCounter()
	if err := harden(boot); err != nil {
		return err
	}
	in, out, err := takeStdio()
	if err != nil {
		return err
	}
	startThreads()
	listener, err := listen()
	if err != nil {
		return err
	}
	if boot.Resolver.IsValid() {
		if err := relayNames(netip.AddrPortFrom(boot.Resolver, 53)); err != nil {
			return err
		}
	}
	ready := make(chan error)
	go g.reaper.fork(ready)
	if err := <-ready; err != nil {
		return err
	}
	go g.reaper.loop()
	go g.watchSignals()
	go g.watchClock()
	go g.accept(listener)
	if boot.Owned {
		g.owner = &stdio{&inlet{f: in}, &outlet{f: out}}
		g.serve(g.owner)
	}
	select {}
}

// harden closes what the container's settings may have left open. Each step
// succeeds, or the sandbox does not begin.
func harden(boot wire.Boot) error {
	if err := undumpable(); err != nil {
		return err
	}
	// A child shares our memory from when it becomes the workload's until it
	// executes, and this setting says who may trace it then.
	if readNumber("/proc/sys/fs/suid_dumpable") == 1 {
		return errors.New("fs.suid_dumpable is 1 on this host, which lets a workload into PID 1's memory; set it to 0 or 2")
	}
	if err := noNewPrivs(); err != nil {
		return err
	}
	type limit struct {
		name  string
		which int
		value uint64
	}
	limits := []limit{{"nproc", unix.RLIMIT_NPROC, uint64(boot.NProc)}, {"core", unix.RLIMIT_CORE, 0}}
	if boot.DiskMiB > 0 {
		// One MiB above: where the file system is as small, its own "no
		// space left" comes first.
		limits = append(limits, limit{"fsize", unix.RLIMIT_FSIZE, uint64(boot.DiskMiB+1) << 20})
	}
	for _, l := range limits {
		var have unix.Rlimit
		if err := unix.Getrlimit(l.which, &have); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
		v := min(l.value, have.Max) // a stricter one stays
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	unix.Umask(0o022)
	return nil
}

// takeStdio moves descriptors 0 and 1 out of the children's way and leaves
// /dev/null there. They do not block: otherwise a pending read could not be
// interrupted, and PID 1 could not end. Go knows that of in alone, so that out
// is never polled (see outlet).
func takeStdio() (in, out *os.File, err error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("/dev/null: %w", err)
	}
	var files [2]*os.File
	for fd := range files {
		moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			err = unix.SetNonblock(moved, false)
		}
		if err == nil {
			err = unix.Dup3(null, fd, 0)
		}
		if err == nil {
			files[fd] = os.NewFile(uintptr(moved), "owner") // polls what does not block
			err = unix.SetNonblock(moved, true)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	_ = unix.Close(null)
	// Whatever else was left open for us is not for the workload.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return files[0], files[1], nil
}

func startThreads() {
	// A goroutine that waits while locked to its thread keeps it, so that the
	// next one needs another; unlocked, they stay for Go to use.
	var locked, all sync.WaitGroup
	release := make(chan struct{})
	locked.Add(threadsAhead)
	for range threadsAhead {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			<-release
		})
	}
	locked.Wait()
	close(release)
	all.Wait()
}

func (g *guest) watchSignals() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP)
	<-ch
	g.end(wire.ExitEnded)
}

// end kills everything and exits. It waits for nothing.
func (g *guest) end(status int) {
	g.ending.Store(true)
	_ = unix.Kill(-1, unix.SIGKILL) // all but PID 1
	os.Exit(status)
}

// unlessEnding never returns once the sandbox ends: what its end did to a
// program is not told as the program's own.
func (g *guest) unlessEnding() {
	if g.ending.Load() {
		select {}
	}
}

// hello answers a connection's greeting.
func (g *guest) hello(m *wire.HostHello) *wire.GuestHello {
	g.mu.Lock()
	defer g.mu.Unlock()
	reply := &wire.GuestHello{Version: Version, Boot: g.id, PID1UID: uint32(os.Getuid()), Owned: g.boot.Owned}
	if m.Configure {
		switch bad := badEnv("env", m.Env); {
		case g.configured:
			reply.Failure = wire.Failure{Code: "conflict", Text: "the sandbox is configured already", Hint: "connect without Configure"}
		case bad != nil:
			reply.Failure = *bad
		case m.Lifetime < 0:
			reply.Failure = wire.Failure{Code: "invalid", Field: "lifetime", Text: "the lifetime is negative"}
		default:
			g.configured, g.env = true, m.Env
			if m.Lifetime > 0 {
				g.live(time.Duration(m.Lifetime))
			}
		}
	}
	reply.Deadline = g.deadline.UnixNano()
	return reply
}

// Version of the guest, set when a release is linked.
var Version = "dev"

// badEnv refuses what would reach a program changed. It quotes no value.
func badEnv(field string, env [][2]string) *wire.Failure {
	for _, kv := range env {
		if kv[0] == "" || strings.ContainsAny(kv[0], "=\x00") {
			return &wire.Failure{Code: "invalid", Field: fmt.Sprintf("%s[%q]", field, kv[0]), Text: "not a variable name", Hint: "names are not empty and have no '=' and no NUL"}
		}
		if strings.IndexByte(kv[1], 0) >= 0 {
			return &wire.Failure{Code: "invalid", Field: fmt.Sprintf("%s[%q]", field, kv[0]), Text: "the value contains a NUL byte", Hint: "pass binary data in a file"}
		}
	}
	return nil
}
