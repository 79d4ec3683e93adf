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

// scan finds the marked processes that match.
func scan(match func(mark uint32) bool) ([]marked, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return nil, err
	}
	var out []marked
	buf := make([]byte, 8<<10)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 1 {
			if m, ok := look(pid, buf); ok && match(m.mark) {
				out = append(out, m)
			}
		}
	}
	return out, nil
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
		found, err := stop(match, deadline)
		if err != nil {
			return err
		}
		alive := false
		for _, m := range found {
			if !m.dead {
				alive = true
				signalMarked(m, unix.SIGKILL)
			}
		}
		if !alive {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("processes do not end")
		}
		time.Sleep(pause) // dying takes the kernel a moment
	}
}

// stop stops to a fixpoint and returns what it found.
func stop(match func(mark uint32) bool, deadline time.Time) ([]marked, error) {
	known := map[int]bool{}
	for {
		found, err := scan(match)
		if err != nil {
			return nil, err
		}
		fresh := false
		for _, m := range found {
			if !m.dead && !known[m.pid] {
				known[m.pid], fresh = true, true
				signalMarked(m, unix.SIGSTOP)
			}
		}
		if !fresh || time.Now().After(deadline) {
			return found, nil
		}
	}
}

// signalMarked signals m's process, and no other that was given its pid in
// the meantime: it looks again once it holds the process.
func signalMarked(m marked, sig unix.Signal) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		if err != unix.ESRCH { // a kernel, or a seccomp profile, without pidfds
			if now, ok := look(m.pid, make([]byte, 8<<10)); ok && now.mark == m.mark {
				_ = unix.Kill(m.pid, sig)
			}
		}
		return
	}
	defer unix.Close(fd)
	if now, ok := look(m.pid, make([]byte, 8<<10)); ok && now.mark == m.mark {
		if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && err != unix.ESRCH {
			_ = unix.Kill(m.pid, sig)
		}
	}
}
