package guest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// remote is an error that the guest told of, in its own cleaned words.
type remote struct {
	text string
	is   error // of package io/fs, or nil
}

func (e *remote) Error() string { return e.text }
func (e *remote) Unwrap() error { return e.is }

var kinds = map[wire.Kind]error{
	wire.KindNotExist: fs.ErrNotExist, wire.KindExist: fs.ErrExist, wire.KindPermission: fs.ErrPermission,
}

// fail puts a cause into the form that callers get. Context errors stay as
// they are; after the connection was lost, everything is gone.
func (c *Client) fail(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &driver.Error{Op: op, Backend: c.opts.Backend, Sandbox: c.opts.Sandbox, Err: err}
	var f *wire.Failure
	var made *driver.Error
	switch {
	case errors.As(err, &made):
		return err
	case errors.As(err, &f):
		e.Code, e.Field, e.Hint = driver.Code(f.Code), clean(f.Field), clean(f.Hint)
		if !slices.Contains(driver.Codes(), e.Code) {
			e.Code = driver.CodeInternal
		}
		e.Err = &remote{clean(f.Text), kinds[f.Kind]}
	case errors.Is(err, wire.ErrTooLarge):
		e.Code, e.Hint = driver.CodeInvalid, "pass large data in a file or by stdin"
	case c.lost(), errors.Is(err, yamux.ErrSessionShutdown):
		e.Code, e.Err = driver.CodeGone, errors.New("the connection to the sandbox was lost")
	default:
		e.Code = driver.CodeInternal
	}
	return e
}

func (c *Client) lost() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// clean makes text from inside fit for a terminal and a log line.
func clean(s string) string {
	const limit = 1024
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
