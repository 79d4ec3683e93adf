package kernel

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const netAdmin = 1 << unix.CAP_NET_ADMIN

// Able refuses a process that may not administer its network. Codes:
// unsupported.
func Able() error {
	caps, err := Caps()
	if err == nil && caps&netAdmin == 0 {
		err = NoAdmin()
	}
	return err
}

// Drop gives up every privilege for good: user and groups, and with them all
// capabilities. Nobody of the same user may look into the process afterwards.
func Drop(uid uint32) error {
	id := int(uid)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	// Package syscall's act on every thread.
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if err := syscall.Setresgid(id, id, id); err != nil {
		return fmt.Errorf("group %d: %w", id, err)
	}
	if err := syscall.Setresuid(id, id, id); err != nil {
		return fmt.Errorf("user %d: %w", id, err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	caps, err := Caps()
	if err != nil {
		return err
	}
	if caps != 0 || os.Getuid() != id || os.Geteuid() != id {
		return fmt.Errorf("privileges were not given up: user %d, capabilities %#x", os.Geteuid(), caps)
	}
	return nil
}

// Caps are the capabilities that the process has or could take.
func Caps() (uint64, error) {
	var all uint64
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		k, v, _ := bytes.Cut(line, []byte(":"))
		switch string(k) {
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			n, err := strconv.ParseUint(string(bytes.TrimSpace(v)), 16, 64)
			if err != nil {
				return 0, err
			}
			all |= n
		}
	}
	return all, nil
}

// Descriptors is how many files the process may have open.
func Descriptors() (int, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	return int(min(l.Max, 1<<20)), nil // a Go program raises its own to the most it may have
}
