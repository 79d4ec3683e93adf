package pid1

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// undumpable makes this process not traceable, and its memory part of no
// core, by anyone without rights over it, the same uid included.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become undumpable: %w", err)
	}
	return nil
}

// noNewPrivs sets the flag on every thread of PID 1, since a child has what
// the thread that makes it has.
func noNewPrivs() error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("cannot set no-new-privileges: %w", errno)
	}
	return nil
}

// oomAdj makes children the memory cap's first victims. A process may raise
// its own score and take that back, no other's: so PID 1 bears the score
// while it forks.
type oomAdj struct {
	f   *os.File
	own string
}

func openOOMAdj() (*oomAdj, error) {
	const name = "/proc/self/oom_score_adj"
	own, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &oomAdj{f, strings.TrimSpace(string(own))}, nil
}

func (o *oomAdj) raise() error { return o.set("1000") }
func (o *oomAdj) lower()       { _ = o.set(o.own) }

func (o *oomAdj) set(v string) error {
	_, err := o.f.WriteAt([]byte(v), 0)
	return err
}

// oomCounter reads how often the memory cap has killed.
type oomCounter struct{ file string }

func findOOMCounter() *oomCounter {
	for _, name := range []string{cgroupDir() + "/memory.events", cgroupRoot + "/memory/memory.oom_control"} {
		c := &oomCounter{name}
		if _, ok := c.read(); ok {
			return c
		}
	}
	return &oomCounter{}
}

func (c *oomCounter) read() (int64, bool) {
	b, err := os.ReadFile(c.file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
