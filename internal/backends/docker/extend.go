package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// extendRounds bounds how often one Extend settles what others changed.
const extendRounds = 20

// Extend moves the deadline in the two places where it stands: the
// container's name, by which sweeps judge, and PID 1's clock, which ends the
// sandbox. Neither goes beyond the label that was fixed at creation.
//
// The place that lets the sandbox live longer is never ahead alone: a later
// deadline goes into the name first, so that no sweep kills by the old one
// what PID 1 lets live, and an earlier one to PID 1 first, which refuses one
// that is past. A failure between the two leaves the earlier of them in force
// where there is a sweep, and the later of them everywhere.
//
// Of several who extend at a time the last name counts: each looks at it
// again after it spoke to PID 1, and tells PID 1 what it finds.
func (s *sandbox) Extend(ctx context.Context, deadline time.Time) error {
	deadline = deadline.Add(time.Second - 1).Truncate(time.Second) // names hold whole seconds
	if err := s.extend(ctx, deadline); err != nil {
		return fail(ctx, "extend", s.id, ended(err))
	}
	return nil
}

func (s *sandbox) extend(ctx context.Context, deadline time.Time) error {
	box, err := s.b.inspect(ctx, s.cli, s.id)
	if err != nil {
		return err
	}
	if err := box.extendable(deadline); err != nil {
		return err
	}
	c, err := s.join(ctx)
	if err != nil {
		return err
	}
	if deadline.Before(box.Deadline) {
		if err := c.Extend(ctx, deadline); err != nil {
			return err
		}
	}
	if err := s.rename(ctx, box, deadline); err != nil {
		return err
	}
	// Told after the name in either case, or of two who extend at a time the
	// one's name could stand beside the other's clock.
	if err := c.Extend(ctx, deadline); err != nil {
		return err
	}
	for range extendRounds {
		if box, err = s.b.inspect(ctx, s.cli, s.id); err != nil {
			return err
		}
		if box.State != driver.StateRunning {
			return box.extendable(deadline)
		}
		if box.Deadline.Equal(deadline) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.status.Name, s.status.Deadline = box.Name, box.Deadline
			return nil
		}
		deadline = box.Deadline // somebody came after us
		if err := c.Extend(ctx, deadline); err != nil {
			return err
		}
	}
	return &driver.Error{Code: driver.CodeConflict, Err: errors.New("others keep moving the deadline"), Hint: "extend a sandbox from one place"}
}

// extendable refuses what can be refused from outside.
func (b described) extendable(deadline time.Time) error {
	switch {
	case b.State == driver.StatePaused:
		return &driver.Error{Code: driver.CodeConflict, Hint: "docker unpause <id>, or kill the sandbox", Err: errors.New("the sandbox is paused")}
	case b.State != driver.StateRunning:
		return &driver.Error{Code: driver.CodeGone, Err: errors.New("the sandbox has ended")}
	case deadline.After(b.expires):
		return driver.Invalid("deadline", fmt.Sprintf("%s is later than %s, which was fixed when the sandbox was created", deadline.UTC().Format(time.RFC3339), b.expires.UTC().Format(time.RFC3339)),
			"create the sandbox with a larger MaxLifetime")
	}
	return nil
}

// rename writes deadline into the container's name.
func (s *sandbox) rename(ctx context.Context, box described, deadline time.Time) error {
	name := containerName(box.Facts.Instance, deadline)
	if box.Name == name {
		return nil
	}
	_, err := s.cli.ContainerRename(ctx, s.id, client.ContainerRenameOptions{NewName: name})
	if err != nil && strings.Contains(err.Error(), "same name as its current name") {
		return nil // another one who wants the same was faster
	}
	return err
}
