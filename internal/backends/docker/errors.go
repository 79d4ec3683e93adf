package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	hintStart  = "start the engine, as with systemctl start docker, or name another, as with DOCKER_HOST"
	hintSetup  = "sandboxio setup docker"
	hintReap   = "sandboxio reap --kill"
	hintLog    = "journalctl -u docker, on the engine's host"
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
		code := codeOf(err)
		return &driver.Error{Code: code, Op: op, Backend: Name, Sandbox: id, Hint: hintOf(code, err), Err: err}
	}
	if errors.As(err, &e) {
		return named(err, op, id)
	}
	code := codeOf(err)
	return &driver.Error{Code: code, Op: op, Backend: Name, Sandbox: id, Hint: hintOf(code, err), Err: err}
}

// during says what was being done when err came about, and leaves what is to be
// known of it where callers look for it.
func during(what string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, during(what, e))
		}
		return driver.Join(all...)
	}
	if e, ok := err.(*driver.Error); ok { //nolint:errorlint // only the outermost
		c := *e
		c.Err = fmt.Errorf("%s: %w", what, e.Err)
		return &c
	}
	return fmt.Errorf("%s: %w", what, err)
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
		errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), // it hung up
		strings.Contains(text, "Cannot connect to the Docker daemon"):
		return driver.CodeUnavailable
	case cerrdefs.IsNotFound(err):
		return driver.CodeNotFound
	case cerrdefs.IsConflict(err), cerrdefs.IsAlreadyExists(err), ambiguous(text):
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

// ambiguous reports whether an engine before 25 made a network of a name that
// another has, which it does, and then knows neither by it.
func ambiguous(text string) bool { return strings.Contains(text, "is ambiguous (") }

// hintOf names the fix for failures of the engine as a whole.
func hintOf(code driver.Code, err error) string {
	text := err.Error()
	switch {
	case code == driver.CodeUnavailable && (client.IsErrConnectionFailed(err) || strings.Contains(text, "Cannot connect to the Docker daemon")):
		return hintStart
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
	case code == driver.CodeConflict && (strings.Contains(text, "already in use") || strings.Contains(text, "already exists") || ambiguous(text)):
		return "create it again, under a name of its own; docker ps -a and docker network ls tell who has this one"
	case code == driver.CodeInternal:
		return hintLog
	}
	return ""
}

// absent reports whether err says that the object is not there.
func absent(err error) bool { return cerrdefs.IsNotFound(err) }
