package pid1

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// markBase is below every mark: supplementary group ids that no image uses.
const markBase = 2_000_000_000

// marked is a process that bears a mark.
type marked struct {
	pid  int
	mark uint32
	dead bool // a zombie, all threads of it
}

// scan visits the marked processes that match, each as soon as it is found.
func scan(match func(mark uint32) bool, visit func(m marked, signal func(unix.Signal))) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	buf := make([]byte, 8<<10)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 1 {
			visitOne(pid, buf, match, visit)
		}
	}
	return nil
}

// visitOne holds the process before it looks at it, so that what is signalled
// is what was seen, and no other that was given the pid in the meantime.
func visitOne(pid int, buf []byte, match func(uint32) bool, visit func(marked, func(unix.Signal))) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	signal := func(sig unix.Signal) { _ = unix.PidfdSendSignal(fd, sig, nil, 0) }
	if err != nil { // a kernel, or a seccomp profile, without pidfds
		signal = func(sig unix.Signal) { _ = unix.Kill(pid, sig) }
	} else {
		defer unix.Close(fd)
	}
	if m, ok := look(pid, buf); ok && match(m.mark) {
		visit(m, signal)
	}
}

// look reads one process's mark.
func look(pid int, buf []byte) (marked, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return marked{}, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil {
		return marked{}, false
	}
	return parseStatus(pid, buf[:n])
}

// parseStatus takes /proc/pid/status apart. The kernel escapes line ends in
// the name, the only part that the process chooses.
func parseStatus(pid int, status []byte) (marked, bool) {
	m := marked{pid: pid}
	var zombie, threads bool
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(key) {
		case "State":
			zombie = bytes.HasPrefix(value, []byte("Z")) || bytes.HasPrefix(value, []byte("X"))
		case "Threads":
			threads = len(value) > 1 || len(value) == 1 && value[0] > '1'
		case "Groups":
			for g := range bytes.FieldsSeq(value) {
				if n, err := strconv.ParseUint(string(g), 10, 32); err == nil && n > markBase {
					m.mark = uint32(n)
				}
			}
		}
	}
	m.dead = zombie && !threads
	return m, m.mark != 0
}

// killWithin bounds a kill: longer, and the kernel itself holds a process.
const killWithin = 10 * time.Second

// kill ends all processes whose mark matches and returns once they are gone.
// They are stopped first, until a scan finds no new one: what is stopped does
// not fork. Then one blow ends them all.
func kill(match func(mark uint32) bool) error {
	deadline := time.Now().Add(killWithin)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		alive, err := stop(match, deadline)
		if err != nil || !alive {
			return err
		}
		err = scan(match, func(m marked, signal func(unix.Signal)) {
			if !m.dead {
				signal(unix.SIGKILL)
			}
		})
		if err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("processes do not end")
		}
		time.Sleep(pause) // dying takes the kernel a moment
	}
}

// stop stops to a fixpoint and reports whether there was any process alive.
func stop(match func(mark uint32) bool, deadline time.Time) (alive bool, err error) {
	known := map[int]bool{}
	for {
		fresh := false
		err := scan(match, func(m marked, signal func(unix.Signal)) {
			if !m.dead && !known[m.pid] {
				known[m.pid], fresh = true, true
				signal(unix.SIGSTOP)
			}
		})
		if err != nil {
			return false, err
		}
		if !fresh || time.Now().After(deadline) {
			return len(known) > 0, nil
		}
	}
}
