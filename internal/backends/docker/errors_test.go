package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/codes"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestErrorsGetACode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code driver.Code
	}{
		{cerrdefs.ErrNotFound, driver.CodeNotFound},
		{cerrdefs.ErrConflict, driver.CodeConflict},
		{cerrdefs.ErrInvalidArgument, driver.CodeInvalid},
		{cerrdefs.ErrUnavailable, driver.CodeUnavailable},
		{cerrdefs.ErrUnauthenticated, driver.CodeUnauthenticated},
		{cerrdefs.ErrPermissionDenied, driver.CodeUnauthenticated},
		{cerrdefs.ErrNotImplemented, driver.CodeUnsupported},
		{errors.New("write /x: no space left on device"), driver.CodeExhausted},
		{errors.New("permission denied while trying to connect to the docker API at unix:///x"), driver.CodeUnauthenticated},
		{errors.New("--storage-opt is supported only for overlay over xfs with 'pquota' mount option"), driver.CodeUnsupported},
		{context.DeadlineExceeded, driver.CodeUnavailable}, // a bound of ours: the caller's passes below
		{io.ErrUnexpectedEOF, driver.CodeUnavailable},      // the engine hung up
		{errors.New("network x is ambiguous (2 matches found on name)"), driver.CodeConflict},
		{errors.New("anything else"), driver.CodeInternal},
		{&driver.Error{Code: driver.CodeGone}, driver.CodeGone},
	} {
		err := fail(t.Context(), "op", "id", fmt.Errorf("wrapped: %w", c.err))
		if driver.CodeOf(err) != c.code {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

func TestErrorsKeepTheirParts(t *testing.T) {
	var e *driver.Error
	if err := fail(t.Context(), "create", "id", &driver.Error{Code: driver.CodeGone, Hint: "h"}); !errors.As(err, &e) || e.Op != "create" || e.Backend != Name || e.Sandbox != "id" || e.Hint != "h" {
		t.Errorf("%#v", e)
	}
	two := driver.Join(driver.Invalid("a", "x", "y"), driver.Invalid("b", "x", "y"))
	if got := driver.Problems(fail(t.Context(), "create", "", two)); len(got) != 2 {
		t.Errorf("joined problems: %v", got)
	}
	for name, err := range map[string]error{"one": driver.Invalid("a", "x", "y"), "two": two, "another's": errors.New("x")} {
		err := fail(t.Context(), "create", "", during("looking", err))
		for _, e := range driver.Problems(err) {
			if e.Backend != Name || e.Hint == "" || !strings.Contains(e.Err.Error(), "looking: x") {
				t.Errorf("%s, and what was being done: %#v", name, e)
			}
		}
		if driver.CodeOf(err) == "" {
			t.Errorf("%s has no code: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fail(ctx, "create", "", errors.New("anything")); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's own end is %v", err)
	}
	if err := fail(ctx, "create", "", leaked("create", "id", errors.New("x"))); !errors.Is(err, driver.CodeLeaked) {
		t.Errorf("a leak is hidden by the caller's end: %v", err)
	}
	if fail(ctx, "create", "", nil) != nil {
		t.Error("nil is an error")
	}
}

// TestThePageOfUnavailableShowsTheFixThatIsPrinted holds docs/errors to the
// error that a command ends with when no engine answers.
func TestThePageOfUnavailableShowsTheFixThatIsPrinted(t *testing.T) {
	e, ok := codes.Of(driver.CodeUnavailable)
	if !ok || e.Example.Fix != hintStart || !strings.Contains(e.Example.Error, "no Docker Engine answers at ") {
		t.Errorf("%+v", e.Example)
	}
}
