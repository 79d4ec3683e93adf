package pid1

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaper starts every process and waits for every one, orphans included: two
// who wait would take each other's exits.
type reaper struct {
	adj   *oomAdj
	forks chan func()
	nproc int // of the workload's, at once

	mu      sync.Mutex // held from before a fork until its pid is known
	waiting map[int]child
}

type child struct {
	done chan syscall.WaitStatus
	ours bool // this binary, which nobody but the workload would stop
}

func newReaper(adj *oomAdj, nproc int) *reaper {
	return &reaper{adj: adj, nproc: nproc, forks: make(chan func()), waiting: map[int]child{}}
}

// workloadNice is by how much a workload is nicer than PID 1, which leaves that
// the time to end one that takes all of it.
const workloadNice = 10

// nicer is what a workload's niceness is beside PID 1's: of an engine that was
// started nice, that is not 0, and one can only become nicer.
func nicer(own int) int { return min(max(own, 0)+workloadNice, 19) }

// forkWithin is far above what a fork takes in a sandbox that is full and busy.
const forkWithin = 5 * time.Second

// fork makes all children, on one thread: they inherit its niceness, which
// PID 1's other threads do not share, and which nobody here may lower again.
func (r *reaper) fork(ready chan<- error) {
	runtime.LockOSThread()
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil { // of which the kernel gives 20 - niceness
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, nicer(20-own))
	}
	ready <- errors.Join(err, r.bound())
	for do := range r.forks {
		do()
	}
}

// start forks and executes a program of the workload's. The channel gives the
// exit status, once.
func (r *reaper) start(argv0 string, argv []string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	return r.child(argv0, argv, attr, false)
}

// helper is start for this binary itself. It is ended when the workload stops
// it, or whoever asked for it would wait for as long as the workload likes.
func (r *reaper) helper(mode string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	return r.child(self, []string{"sandboxio-guest", mode}, attr, true)
}

func (r *reaper) child(argv0 string, argv []string, attr *syscall.ProcAttr, ours bool) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.adj.raise(); err != nil {
		return nil, err
	}
	var pid int
	var err error
	// Until it executes, the child keeps this thread waiting, and is already
	// the workload's to stop. Whoever does so ends it.
	stuck := time.AfterFunc(forkWithin, func() {
		mark := attr.Sys.Credential.Groups[0]
		_ = kill(func(m uint32) bool { return m == mark })
	})
	defer stuck.Stop()
	forked := make(chan struct{})
	r.forks <- func() {
		pid, err = syscall.ForkExec(argv0, argv, attr)
		close(forked)
	}
	<-forked
	r.adj.lower()
	// The child changed its user while it shared our memory, and the kernel
	// then sets for both what fs.suid_dumpable says, which may be anything.
	if derr := undumpable(); derr != nil && err == nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		err = derr
	}
	if err != nil {
		return nil, err
	}
	done := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = child{done, ours}
	return done, nil
}

// loop reaps for ever.
func (r *reaper) loop() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGCHLD)
	for {
		r.reap()
		<-ch
	}
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil || pid <= 0:
			return
		}
		switch c, known := r.waiting[pid]; {
		case status.Stopped():
			if c.ours {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		case known:
			delete(r.waiting, pid)
			c.done <- status
		}
	}
}
