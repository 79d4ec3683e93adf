package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// openFile opens a file to read. What is none, as a pipe or a device, could be
// read for ever and is refused; field is the flag that names it.
func openFile(field, name, fix string) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(name); err == nil {
			return f, nil
		}
	}
	return nil, driver.Invalid(field, err.Error(), fix)
}

// writeFile writes a file of which whoever waits for it sees all or nothing.
// What is no regular file, as /dev/stdout, is written to and not replaced.
func writeFile(name string, write func(io.Writer) error) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0) // O_TRUNC means nothing to a device
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".sandboxio-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err == nil {
		return nil
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
