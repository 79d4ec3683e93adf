package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code names a kind of failure. Codes are API: they are never renamed. A Code
// is itself an error, so that errors.Is(err, driver.CodeGone) works.
type Code string

const (
	CodeInvalid         Code = "invalid"         // the request is malformed; Field names where
	CodeUnsupported     Code = "unsupported"     // this backend cannot enforce what was asked
	CodeDenied          Code = "denied"          // a policy said no
	CodeUnauthenticated Code = "unauthenticated" // the provider did not accept our credentials
	CodeNotFound        Code = "not-found"       // never existed, as far as can be told
	CodeGone            Code = "gone"            // existed, and ended
	CodeConflict        Code = "conflict"        // somebody else holds it, or it changed under us
	CodeExhausted       Code = "exhausted"       // out of quota or capacity
	CodeRateLimited     Code = "rate-limited"    // slow down; RetryAfter may say by how much
	CodeUnavailable     Code = "unavailable"     // the provider did not answer
	CodeTimeout         Code = "timeout"         // the sandbox's or command's own limit, not the caller's
	CodeLeaked          Code = "leaked"          // something may be left running; the hint says how to find it
	CodeInternal        Code = "internal"        // a bug, ours or the provider's
)

// Codes lists every code, in the order of the documentation.
func Codes() []Code {
	return []Code{CodeInvalid, CodeUnsupported, CodeDenied, CodeUnauthenticated, CodeNotFound, CodeGone, CodeConflict,
		CodeExhausted, CodeRateLimited, CodeUnavailable, CodeTimeout, CodeLeaked, CodeInternal}
}

func (c Code) Error() string { return string(c) }

// Error is the one error type of sandboxio. It is made where the failure is
// understood and wrapped once more at most, at the border to the caller. Its
// text ends with the Hint, in parentheses.
type Error struct {
	Code       Code
	Op         string        // "create", "start", "attach", …
	Backend    string        // name of the backend
	Sandbox    string        // id of the sandbox
	Field      string        // path in the request: "network.egress[2].host"
	Hint       string        // the exact fix, a command where there is one
	RetryAfter time.Duration // zero when unknown
	Err        error         // the cause, never a secret in it
}

func (e *Error) Error() string {
	var b strings.Builder
	for _, s := range []string{e.Backend, e.Op, e.Sandbox, e.Field} {
		if s != "" {
			b.WriteString(s)
			b.WriteString(": ")
		}
	}
	b.WriteString(string(e.Code))
	if e.Err != nil && e.Err.Error() != string(e.Code) {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, CodeX) true for an error of that code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Invalid is the error for a malformed field: where, what is wrong with the
// value, and the fix.
func Invalid(field, problem, fix string) error {
	return &Error{Code: CodeInvalid, Field: field, Err: errors.New(problem), Hint: fix}
}

// Unsupported is the error of a Check: the backend cannot enforce field.
func Unsupported(field, problem, fix string) error {
	return &Error{Code: CodeUnsupported, Field: field, Err: errors.New(problem), Hint: fix}
}

// CodeOf gives the code of err: the first found in its tree, "" for nil and
// for context errors, and internal for anything else. A joined leak counts
// before all others.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if errors.Is(err, CodeLeaked) {
		return CodeLeaked
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	return CodeInternal
}

// Problems takes a joined error apart: every *Error in it, in order.
func Problems(err error) []*Error {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, sub := range e.Unwrap() {
			all = append(all, Problems(sub)...)
		}
		return all
	case interface{ Unwrap() error }:
		return Problems(e.Unwrap())
	}
	return []*Error{{Code: CodeOf(err), Err: err}}
}

// Join is errors.Join that gives a single error back as it is.
func Join(errs ...error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
