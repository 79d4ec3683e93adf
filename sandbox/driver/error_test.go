package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestCodeOf(t *testing.T) {
	gone := &driver.Error{Code: driver.CodeGone, Op: "start"}
	leak := &driver.Error{Code: driver.CodeLeaked, Op: "kill"}
	for _, c := range []struct {
		name string
		err  error
		want driver.Code
	}{
		{"no error has no code", nil, ""},
		{"an error's own", gone, driver.CodeGone},
		{"under a wrapping", fmt.Errorf("run: %w", gone), driver.CodeGone},
		{"a code alone", driver.CodeDenied, driver.CodeDenied},
		{"the caller's cancellation has none", fmt.Errorf("x: %w", context.Canceled), ""},
		{"the caller's deadline has none", context.DeadlineExceeded, ""},
		{"a leak counts before all others", errors.Join(gone, leak), driver.CodeLeaked},
		{"a leak beside a cancellation", errors.Join(context.Canceled, leak), driver.CodeLeaked},
		{"anything else is our bug", errors.New("x"), driver.CodeInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := driver.CodeOf(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestErrorSaysWhereWhatAndTheFix(t *testing.T) {
	err := &driver.Error{Code: driver.CodeUnsupported, Op: "check", Backend: "docker", Field: "network.expose", Hint: "remove it", Err: errors.New("no ports")}
	if got, want := err.Error(), "docker: check: network.expose: unsupported: no ports (remove it)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&driver.Error{Code: driver.CodeGone, Err: driver.CodeGone}).Error(), "gone"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("files: %w", &driver.Error{Code: driver.CodeNotFound, Err: &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}})
	for _, target := range []error{driver.CodeNotFound, fs.ErrNotExist} {
		if !errors.Is(err, target) {
			t.Errorf("errors.Is(%v, %v) is false", err, target)
		}
	}
	if errors.Is(err, driver.CodeGone) {
		t.Error("another code is matched")
	}
}

func TestProblemsTakesAJoinApart(t *testing.T) {
	a, b, c := driver.Invalid("a", "x", "y"), driver.Unsupported("b", "x", "y"), errors.New("plain")
	var got []string
	for _, p := range driver.Problems(fmt.Errorf("check: %w", driver.Join(a, nil, fmt.Errorf("w: %w", driver.Join(b, c))))) {
		got = append(got, p.Field+" "+string(p.Code))
	}
	if diff := cmp.Diff([]string{"a invalid", "b unsupported", " internal"}, got); diff != "" {
		t.Error(diff)
	}
	if driver.Problems(nil) != nil || driver.Join(nil, nil) != nil {
		t.Error("no problem is one")
	}
	if driver.Join(nil, a) != a { //nolint:errorlint // the very same, not one like it
		t.Error("a single error is not given back as it is")
	}
}
