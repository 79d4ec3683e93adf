//go:build linux || darwin

package archive

import (
	"os"
	"syscall"
	"time"
)

// touch sets a file's modification time, by its descriptor: its name may be
// another's by now. A time that the system does not have is not kept.
func touch(_ *os.Root, _ string, f *os.File, t time.Time) error {
	if t.Unix() <= 0 || t.Year() > 2200 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	tv := syscall.NsecToTimeval(t.UnixNano())
	cerr := raw.Control(func(fd uintptr) { err = syscall.Futimes(int(fd), []syscall.Timeval{tv, tv}) })
	if cerr != nil {
		return cerr
	}
	return err
}
