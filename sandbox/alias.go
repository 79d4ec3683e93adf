package sandbox

import (
	"errors"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The words that drivers share live in package driver and mean the same here;
// their fields are listed there.
type (
	// Isolation is a tier: Unverified, Container, UserKernel, MicroVM.
	Isolation = driver.Isolation
	// Evidence is why a tier is believed: Source, Detail, Date.
	Evidence = driver.Evidence
	// Trust says who vouches for the code: see Untrusted and Trusted.
	Trust = driver.Trust
	// Profile is Strict or Compat.
	Profile = driver.Profile
	// Resources are caps: CPUMillis (zero = 1000), MemoryMiB (512), DiskMiB
	// (256), PIDs (256).
	Resources = driver.Resources
	// Network is what a sandbox reaches: Egress []Rule, Expose []uint16, Mode,
	// Learn. Zero reaches nothing.
	Network = driver.Network
	// Rule opens a Host or a Prefix on its Ports, nil = 80 and 443, for the
	// reason Why.
	Rule = driver.Rule
	// Mode is how rules are enforced: driver.Transparent or driver.Proxy.
	Mode = driver.Mode
	// Denials are what programs were refused: Told, each kind once, and Other.
	Denials = driver.Denials
	// Denial is one kind of it: Host, Addr, Port, Reason, Count, First, Last.
	Denial = driver.Denial
	// Secret is a value that prints itself as "[secret]"; see NewSecret.
	Secret = driver.Secret
	// Chunk is a piece of output: Stream, Data.
	Chunk = driver.Chunk
	// Stream is Stdout or Stderr.
	Stream = driver.Stream
	// Exit is how a program ended: Code, Signal, OOM (nil = could not tell),
	// TimedOut.
	Exit = driver.Exit
	// Status is one sandbox as its backend shows it: ID, Name, Backend, State,
	// Image, Created, Ended, Deadline, Detached, Facts, Labels, Isolation,
	// Evidence.
	Status = driver.Status
	// State is where in its life a sandbox is.
	State = driver.State
	// FileInfo describes one file: Name, Size, Mode, ModTime, Link.
	FileInfo = driver.FileInfo
	// Code names a kind of failure. It is an error itself, so that
	// errors.Is(err, CodeGone) works.
	Code = driver.Code
	// Error is the one error type: Code, Op, Backend, Sandbox, Field, Hint,
	// RetryAfter, Err. Its text ends with the Hint, the exact fix, in
	// parentheses.
	Error = driver.Error
)

// WorkDir is where programs start and relative names begin.
const WorkDir = driver.WorkDir

const (
	Unverified = driver.Unverified
	Container  = driver.Container
	UserKernel = driver.UserKernel
	MicroVM    = driver.MicroVM

	Strict = driver.Strict
	Compat = driver.Compat

	Stdout = driver.Stdout
	Stderr = driver.Stderr

	CodeInvalid         = driver.CodeInvalid
	CodeUnsupported     = driver.CodeUnsupported
	CodeDenied          = driver.CodeDenied
	CodeUnauthenticated = driver.CodeUnauthenticated
	CodeNotFound        = driver.CodeNotFound
	CodeGone            = driver.CodeGone
	CodeConflict        = driver.CodeConflict
	CodeExhausted       = driver.CodeExhausted
	CodeRateLimited     = driver.CodeRateLimited
	CodeUnavailable     = driver.CodeUnavailable
	CodeTimeout         = driver.CodeTimeout
	CodeLeaked          = driver.CodeLeaked
	CodeInternal        = driver.CodeInternal
)

// Untrusted is code that nobody vouches for.
var Untrusted = driver.Untrusted

// Trusted is code that somebody vouches for, and why. An empty reason, or one
// without a letter, is refused when a sandbox is created; the reason is recorded.
func Trusted(reason string) Trust { return driver.Trusted(reason) }

// NewSecret wraps a value so that it cannot print itself.
func NewSecret(value string) Secret { return driver.NewSecret(value) }

// CodeOf gives the code of an error. It is "" for nil, for context errors, and
// for an [*ExitError]: how a program ended is its own affair, and no failure of
// the sandbox. Of several that are joined a failure counts before those.
func CodeOf(err error) Code {
	code := driver.CodeOf(err)
	if _, own := errors.AsType[*ExitError](err); own && code == CodeInternal && !errors.Is(err, CodeInternal) {
		return ""
	}
	return code
}

// As reaches a backend's native types, outside the compatibility promise: it
// takes a backend, a [Sandbox] or a [Process].
func As[T any](x any) (T, bool) {
	switch v := x.(type) {
	case *Sandbox:
		return driver.As[T](v.sb)
	case *Process:
		return driver.As[T](v.p)
	case *Runtime:
		return driver.As[T](v.b)
	}
	return driver.As[T](x)
}
