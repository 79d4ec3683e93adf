package audit

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	exclusive     = 2  // LOCKFILE_EXCLUSIVE_LOCK
	immediately   = 1  // LOCKFILE_FAIL_IMMEDIATELY
	lockViolation = 33 // ERROR_LOCK_VIOLATION
)

// lock takes the file for this process until it is closed. Locks keep readers
// out here, so it takes one byte far behind the end.
func lock(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: 1 << 30}
	call := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")
	if err := call.Find(); err != nil {
		return unavailable(err, "")
	}
	ok, _, err := call.Call(f.Fd(), exclusive|immediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, syscall.Errno(lockViolation)), errors.Is(err, syscall.ERROR_IO_PENDING):
		return taken(f.Name())
	}
	return unavailable(&os.PathError{Op: "lock", Path: f.Name(), Err: err}, "use a file system that has locks")
}

// syncDir has nothing to do: a directory cannot be forced here, the file
// system's journal keeps names.
func syncDir(string) error { return nil }
