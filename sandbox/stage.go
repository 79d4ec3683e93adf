package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// stage is where a directory grows until it is whole: beside its place, or
// inside if the place exists, which may be somewhere that nothing can be
// renamed to.
type stage struct {
	at     *os.Root // what it is made in
	temp   string   // its name there
	base   string   // the name it gets there; "" if what it holds goes into at
	inside *os.Root
}

func newStage(dir string) (*stage, error) {
	if dir == "" {
		return nil, driver.Invalid("dir", "is empty", "give a directory of this host")
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, onHost(err)
	}
	s := &stage{temp: archive.TempName()}
	if s.at, err = os.OpenRoot(full); errors.Is(err, fs.ErrNotExist) {
		s.base = filepath.Base(full)
		s.at, err = os.OpenRoot(filepath.Dir(full))
	} else if err == nil {
		err = vacant(s.at)
	}
	if err == nil {
		err = s.at.Mkdir(s.temp, 0o777) // as far as the umask lets
	}
	if err == nil {
		s.inside, err = s.at.OpenRoot(s.temp)
	}
	if err != nil {
		return nil, driver.Join(onHost(err), s.drop())
	}
	return s, nil
}

// vacant refuses a directory that holds something.
func vacant(dir *os.Root) error {
	names, err := namesIn(dir, 1)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return &Error{Code: CodeConflict, Field: "dir", Err: fmt.Errorf("%s is not empty: %w", dir.Name(), fs.ErrExist), Hint: "give a directory that is empty or does not exist"}
	}
	return nil
}

func namesIn(dir *os.Root, n int) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, f.Close())
}

// commit puts what is there in its place.
func (s *stage) commit() error {
	names, err := namesIn(s.inside, -1)
	// Some systems rename no directory that is open.
	err = errors.Join(err, s.inside.Close())
	s.inside = nil
	switch {
	case err != nil:
		return onHost(err)
	case s.base != "":
		return onHost(s.at.Rename(s.temp, s.base))
	}
	for i, name := range names {
		if err := s.move(name); err != nil {
			for _, done := range names[:i] {
				err = driver.Join(err, s.at.RemoveAll(done))
			}
			return onHost(err)
		}
	}
	return onHost(s.at.Remove(s.temp))
}

func (s *stage) move(name string) error {
	if _, err := s.at.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return driver.Join(err, fmt.Errorf("%q: %w", name, fs.ErrExist)) // since a moment
	}
	return s.at.Rename(s.temp+string(filepath.Separator)+name, name)
}

// drop removes what is there.
func (s *stage) drop() error {
	var err error
	if s.at != nil {
		err = s.at.RemoveAll(s.temp)
	}
	return onHost(errors.Join(err, s.close()))
}

func (s *stage) close() error {
	var errs []error
	for _, r := range []*os.Root{s.inside, s.at} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// onHost gives an error of the host's files its code.
func onHost(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: CodeInvalid, Field: "dir", Err: err, Hint: "give a directory that this process can make and write to"}
	if errors.Is(err, fs.ErrExist) {
		e.Code, e.Hint = CodeConflict, "give a directory that is empty or does not exist"
	} else if errors.Is(err, syscall.ENOSPC) {
		e.Code, e.Hint = CodeExhausted, "free some space"
	}
	return e
}
