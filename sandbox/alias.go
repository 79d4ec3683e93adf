package sandbox

import "github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"

// The words that drivers share live in package driver and mean the same here.
//
//nolint:revive // each alias is documented where its type is
type (
	Isolation = driver.Isolation
	Evidence  = driver.Evidence
	Trust     = driver.Trust
	Profile   = driver.Profile
	Resources = driver.Resources
	Network   = driver.Network
	Rule      = driver.Rule
	Mode      = driver.Mode
	Secret    = driver.Secret
	Chunk     = driver.Chunk
	Stream    = driver.Stream
	Exit      = driver.Exit
	Status    = driver.Status
	State     = driver.State
	FileInfo  = driver.FileInfo
	Code      = driver.Code
	Error     = driver.Error
)

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

// Trusted is code that somebody vouches for, and why.
func Trusted(reason string) Trust { return driver.Trusted(reason) }

// NewSecret wraps a value so that it cannot print itself.
func NewSecret(value string) Secret { return driver.NewSecret(value) }

// CodeOf gives the code of an error, "" for nil and for context errors.
func CodeOf(err error) Code { return driver.CodeOf(err) }

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
