//go:build linux || darwin

package audit

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process until it is closed.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return taken(f.Name())
	case err != nil:
		return unavailable(&os.PathError{Op: "lock", Path: f.Name(), Err: err}, "use a file system that has locks")
	}
	return nil
}

// syncDir forces a new file's name to the disk.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
