package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Extend lets the sandbox live for d from now, by the backend's clock; a
// shorter d than what is left brings its end nearer. Deadlines are whole
// seconds, and d is rounded up to one, or down at the limit. What Spec.MaxLifetime
// allowed at creation, which is what the Guard judged, is the limit, for who
// attached as well. Running commands keep their own timeouts.
//
// Codes: invalid (beyond the limit, or not positive), unsupported (the backend
// cannot), gone.
func (s *Sandbox) Extend(ctx context.Context, d time.Duration) error {
	op := s.begin("extend", Cmd{})
	before := s.sb.Status().Deadline
	return op.end(ctx, s.extend(ctx, d, op), func() error { return s.takeBack(ctx, before) })
}

// takeBack gives the sandbox its earlier deadline, since its extension could
// not be recorded. If that has passed meanwhile, the sandbox ends.
func (s *Sandbox) takeBack(ctx context.Context, deadline time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.rt.opts.Grace)
	defer cancel()
	e, ok := driver.As[driver.Extender](s.sb)
	if !ok {
		return nil // it was never extended
	}
	err := e.Extend(ctx, deadline)
	if errors.Is(err, CodeInvalid) {
		return s.destroy()
	}
	return err
}

func (s *Sandbox) extend(ctx context.Context, d time.Duration, op *operation) error {
	if d < time.Second {
		return driver.Invalid("lifetime", d.String()+" is less than a second", "give the time from now, as 5*time.Minute; Close ends it at once")
	}
	if d > driver.MaxLifetime {
		return driver.Invalid("lifetime", d.String()+" is longer than any sandbox lives", "give at most "+driver.MaxLifetime.String())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e, ok := driver.As[driver.Extender](s.sb)
	if !ok || !s.rt.info.Can(driver.CanExtend) {
		return driver.Unsupported("lifetime", "the backend cannot extend a sandbox", "create it with the lifetime that it needs")
	}
	now := time.Now()
	if clock, ok := driver.As[driver.Clock](s.rt.b); ok {
		var err error
		if now, err = clock.Now(ctx); err != nil {
			return err
		}
	}
	// A deadline is a whole second: rounded up, like a lifetime, or down where
	// the limit itself is asked for.
	err := e.Extend(ctx, now.Add(d+time.Second-1).Truncate(time.Second))
	if errors.Is(err, CodeInvalid) {
		err = e.Extend(ctx, now.Add(d).Truncate(time.Second))
	}
	if err == nil {
		op.record.Deadline = s.sb.Status().Deadline
	}
	if s.fixed && errors.Is(err, CodeInvalid) {
		return driver.Invalid("lifetime", "the sandbox was created for its lifetime and no longer", "set Spec.MaxLifetime when it is created")
	}
	return err
}
