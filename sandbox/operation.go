package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// operation is one call of the public API under way. Its end is the only
// place that names an error, takes secrets out, and hands the Record to the
// sinks.
type operation struct {
	rt     *Runtime
	record Record
	redact redact.Redactor
	of     *Sandbox // nil for what is not an operation of one
}

func (r *Runtime) begin(op string) *operation {
	return &operation{rt: r, record: Record{Time: time.Now(), Op: op, Backend: r.info.Name, Owner: r.opts.Owner}}
}

// end gives the error to return: err named and redacted, joined with a sink's
// failure. undo is called when everything went well but the Record could not
// be kept; it may be nil.
func (o *operation) end(ctx context.Context, err error, undo func() error) error {
	err = o.name(err)
	o.record.Duration = time.Since(o.record.Time)
	o.record.Code = CodeOf(err)
	if err != nil {
		o.record.Error = err.Error()
		if o.record.Code == "" {
			o.record.Code = Code(canceled(err))
		}
	}
	// The caller's context may have ended; what happened is recorded all the
	// same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.rt.opts.Grace)
	defer cancel()
	if o.of != nil && slices.Contains(tellsDenials, o.record.Op) {
		o.of.denials.tell(ctx, o.of.sb, &o.record)
	}
	o.record.clean(o.redact)
	var failed error
	for _, s := range o.rt.opts.Sinks {
		if serr := keep(ctx, s, o.record); serr != nil {
			failed = driver.Join(failed, serr)
		}
	}
	if failed == nil {
		return err
	}
	failed = o.name(&Error{Code: CodeUnavailable, Op: o.record.Op, Err: errors.New("the record could not be kept: " + failed.Error()), Hint: "repair the sink; what cannot be recorded does not happen"})
	if err == nil && undo != nil {
		failed = driver.Join(failed, o.name(undo()))
	}
	return driver.Join(err, failed)
}

// keep hands r to s. A sink that panics has failed: the panic must not get past
// what undoes the operation.
func keep(ctx context.Context, s Sink, r Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sink panicked: %v", p)
		}
	}()
	return s.Record(ctx, r)
}

// canceled is the Record's word for a context error; the returned error stays
// the context's own.
func canceled(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "deadline-exceeded"
	}
	return "canceled"
}

// name wraps err once: context errors stay as they are, an Error of the driver
// gets the operation and the sandbox, anything else becomes internal.
func (o *operation) name(err error) error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, o.name(e))
		}
		return driver.Join(all...)
	}
	if CodeOf(err) == "" { // a context error, which somebody may have wrapped
		return ctxError(err)
	}
	e := &Error{Code: CodeInternal, Err: err}
	if found, ok := errors.AsType[*Error](err); ok {
		c := *found
		e = &c
	} else if c := CodeOf(err); c != CodeInternal {
		e.Code = c
	}
	e.Op = o.record.Op
	if e.Backend == "" {
		e.Backend = o.rt.info.Name
	}
	if e.Sandbox == "" {
		e.Sandbox = o.record.Sandbox
	}
	if e.Code == CodeGone && o.of != nil {
		o.of.tellEnd(e)
	}
	e.Hint = o.redact.String(e.Hint)
	e.Field = o.redact.String(e.Field)
	if e.Err != nil && o.redact.Has(e.Err.Error()) {
		e.Err = redacted{o.redact.String(e.Err.Error()), fileError(e.Err)}
	}
	return e
}

func ctxError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// redacted is an error whose text held a secret. Of its tree only the words
// of io/fs survive: anything else could print the secret.
type redacted struct {
	text string
	is   error
}

func (r redacted) Error() string { return r.text }
func (r redacted) Unwrap() error { return r.is }

func fileError(err error) error {
	for _, e := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}
