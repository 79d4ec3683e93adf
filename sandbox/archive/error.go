package archive

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// Error says why an archive is refused. Its text is fit for a log line,
// whatever the archive's names are.
type Error struct {
	Limit string // the field of Limits that was exceeded: "bytes"; "" if the archive itself is bad
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint is the fix, if there is one.
func (e *Error) Hint() string {
	if e.Limit == "" {
		return ""
	}
	return "raise limits." + e.Limit + ", or take a smaller directory"
}

func exceeded(limit, what string, n int64) error {
	return &Error{Limit: limit, Err: fmt.Errorf("the archive has more than %d %s", n, what)}
}

func refused(name, problem string) error {
	return &Error{Err: fmt.Errorf("%s %s", quote(name), problem)}
}

// about puts the name of what it is about before an error of the system's, in
// place of the raw one that such errors have.
func about(name string, err error) error {
	switch e := err.(type) { //nolint:errorlint // what is wrapped was put into words already
	case *Error, *named:
		return err
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return &named{name, err}
}

type named struct {
	name string
	err  error
}

func (e *named) Error() string { return quote(e.name) + ": " + e.err.Error() }
func (e *named) Unwrap() error { return e.err }

// quote makes a name from anywhere fit for a terminal and a log line.
func quote(name string) string {
	const limit = 256
	if len(name) > limit {
		return strconv.QuoteToASCII(name[:limit]) + "…"
	}
	return strconv.QuoteToASCII(name)
}
