package docker

import (
	"context"
	"errors"
	"os"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Name is the backend's name in errors, DSNs and Terraform.
const Name = "docker"

const (
	hintDoctor = "sandboxio doctor"
	hintSetup  = "sandboxio setup docker"
	hintReap   = "sandboxio reap --kill"
)

// fail turns what an engine call gave into the error a caller gets. ctx is the
// caller's own context: once it has ended, its error is the only one that
// matters, and it passes unwrapped. Bounds that are ours end as unavailable.
func fail(ctx context.Context, op, id string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil && driver.CodeOf(err) != driver.CodeLeaked {
		return ctxErr
	}
	var joined interface{ Unwrap() []error }
	var e *driver.Error
	if errors.As(err, &joined) && !errors.As(err, &e) {
		return &driver.Error{Code: codeOf(err), Op: op, Backend: Name, Sandbox: id, Err: err}
	}
	if errors.As(err, &e) {
		return named(err, op, id)
	}
	code := codeOf(err)
	return &driver.Error{Code: code, Op: op, Backend: Name, Sandbox: id, Hint: hintOf(code, err), Err: err}
}

// named fills in what a *driver.Error from a lower layer does not know, in each
// of several that are joined. Other shapes pass as they are.
func named(err error, op, id string) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, named(e, op, id))
		}
		return driver.Join(all...)
	}
	e, ok := err.(*driver.Error) //nolint:errorlint // only the outermost
	if !ok {
		return err
	}
	c := *e
	if c.Op == "" {
		c.Op = op
	}
	if c.Backend == "" {
		c.Backend = Name
	}
	if c.Sandbox == "" {
		c.Sandbox = id
	}
	return &c
}

func codeOf(err error) driver.Code {
	text := err.Error()
	switch {
	case errors.Is(err, os.ErrPermission), strings.Contains(text, "permission denied while trying to connect"),
		cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err):
		return driver.CodeUnauthenticated
	case client.IsErrConnectionFailed(err), cerrdefs.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled), strings.Contains(text, "Cannot connect to the Docker daemon"):
		return driver.CodeUnavailable
	case cerrdefs.IsNotFound(err):
		return driver.CodeNotFound
	case cerrdefs.IsConflict(err), cerrdefs.IsAlreadyExists(err):
		return driver.CodeConflict
	case cerrdefs.IsResourceExhausted(err), strings.Contains(text, "no space left on device"):
		return driver.CodeExhausted
	case cerrdefs.IsNotImplemented(err), strings.Contains(text, "storage-opt is supported only"),
		strings.Contains(text, "is too old. Minimum supported API version"), strings.Contains(text, "requires API version"),
		strings.Contains(text, "minimum supported API version"):
		return driver.CodeUnsupported
	case cerrdefs.IsInvalidArgument(err):
		return driver.CodeInvalid
	}
	return driver.CodeInternal
}

// hintOf names the fix for failures of the engine as a whole.
func hintOf(code driver.Code, err error) string {
	text := err.Error()
	switch {
	case code == driver.CodeUnavailable:
		return hintDoctor
	case code == driver.CodeUnauthenticated:
		return "sudo usermod -aG docker $USER, then log in again"
	case strings.Contains(text, "storage-opt"):
		return `use profile "strict", or a data root on xfs mounted with pquota`
	case strings.Contains(text, "is too old. Minimum"):
		return "upgrade sandboxio: this engine accepts newer clients only"
	case code == driver.CodeUnsupported:
		return "upgrade Docker Engine to 20.10 or later"
	case code == driver.CodeExhausted:
		return "docker system df"
	}
	return ""
}

// absent reports whether err says that the object is not there.
func absent(err error) bool { return cerrdefs.IsNotFound(err) }
