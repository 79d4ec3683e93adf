package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// stampSlack is by how much a backend's stamp of a deadline, in whole seconds
// and rounded up, may be later than the end that the sandbox makes by itself.
const stampSlack = 2 * time.Second

func absent(err error) bool {
	return errors.Is(err, driver.CodeNotFound) || errors.Is(err, driver.CodeGone)
}

// refresh fills m from the backend. A sandbox that is no longer there has
// expired if its deadline has passed by the backend's clock, and is gone
// otherwise.
func (r *sandboxResource) refresh(ctx context.Context, m *model) (found bool, err error) {
	rt, err := r.site.Runtime(ctx, m.Backend.ValueString())
	if err != nil {
		return false, err
	}
	sb, err := rt.Attach(ctx, m.ID.ValueString())
	if err == nil {
		m.flatten(sb.Status())
		return true, nil
	}
	if !absent(err) {
		return false, err
	}
	deadline, err := time.Parse(time.RFC3339, m.Deadline.ValueString())
	if err != nil {
		return false, &driver.Error{Code: driver.CodeInternal, Backend: m.Backend.ValueString(), Sandbox: m.ID.ValueString(),
			Err: fmt.Errorf("it is gone, and the state's deadline cannot be read: %w", err), Hint: "terraform state rm, then apply"}
	}
	now, err := r.now(ctx, m.Backend.ValueString())
	if err != nil {
		return false, err
	}
	if now.Add(stampSlack).Before(deadline) {
		return false, nil
	}
	m.Status = types.StringValue(statusExpired)
	return true, nil
}

// now asks the clock that deadlines are judged by.
func (r *sandboxResource) now(ctx context.Context, backend string) (time.Time, error) {
	b, err := r.site.Open(ctx, backend)
	if err != nil {
		return time.Time{}, err
	}
	if c, ok := driver.As[driver.Clock](b); ok {
		return c.Now(ctx)
	}
	return time.Now(), nil
}

// destroy kills the sandbox and then looks whether it is gone. One that was
// gone before is a success.
func (r *sandboxResource) destroy(ctx context.Context, m model) error {
	rt, err := r.site.Runtime(ctx, m.Backend.ValueString())
	if err != nil {
		return err
	}
	sb, err := rt.Attach(ctx, m.ID.ValueString())
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// A removal that somebody else began may take a moment longer.
	if err := sb.Close(); err != nil && !absent(err) && !errors.Is(err, driver.CodeConflict) {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := rt.Attach(ctx, m.ID.ValueString())
		if absent(err) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err == nil {
				err = errors.New("it is still there")
			}
			return &driver.Error{
				Code: driver.CodeLeaked, Backend: m.Backend.ValueString(), Sandbox: m.ID.ValueString(),
				Err:  fmt.Errorf("killed, and still not gone when the timeout passed: %w", err),
				Hint: "run terraform destroy again; it ends by itself at " + m.Deadline.ValueString(),
			}
		}
	}
}
