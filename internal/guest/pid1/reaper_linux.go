package pid1

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper starts every process and waits for every one, orphans included: two
// who wait would take each other's exits.
type reaper struct {
	adj *oomAdj

	mu      sync.Mutex // held from before a fork until its pid is known
	waiting map[int]chan syscall.WaitStatus
}

func newReaper(adj *oomAdj) *reaper {
	return &reaper{adj: adj, waiting: map[int]chan syscall.WaitStatus{}}
}

// start forks and executes. The channel gives the exit status, once.
func (r *reaper) start(argv0 string, argv []string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.adj.raise(); err != nil {
		return nil, err
	}
	pid, err := syscall.ForkExec(argv0, argv, attr)
	r.adj.lower()
	if err != nil {
		return nil, err
	}
	done := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = done
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
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil || pid <= 0:
			return
		}
		if done := r.waiting[pid]; done != nil {
			delete(r.waiting, pid)
			done <- status
		}
	}
}
