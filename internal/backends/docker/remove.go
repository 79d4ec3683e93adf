package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	removeLimit  = 15 * time.Second // for all of it
	attemptLimit = 6 * time.Second  // for one answer
)

// remove kills a container, takes its anonymous volumes with it, and returns
// once the engine no longer knows it. An engine may answer before it is done,
// be removing it already, or lose track, so the loop ends only with "no such
// container", or with the bound.
func (b *Backend) remove(ctx context.Context, cli *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, b.removeLimit)
	defer cancel()
	wait := 2 * time.Millisecond
	var last error
	for {
		err := bounded(ctx, func(ctx context.Context) error {
			_, err := cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			return err
		})
		if absent(err) {
			return nil
		}
		if err != nil {
			last = err
		}
		// Removed, or under way, or failed: only its absence counts.
		if err == nil || cerrdefs.IsConflict(err) {
			err = bounded(ctx, func(ctx context.Context) error {
				_, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
				return err
			})
			if absent(err) {
				return nil
			}
			if err != nil {
				last = err
			}
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, 250*time.Millisecond)
		case <-ctx.Done():
			if last == nil {
				last = errors.New("the engine removes it and still has it")
			}
			return last
		}
	}
}

func bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	return call(ctx)
}

// undo removes what a failed call made, whether or not the caller still
// waits, and gives the error for both.
func (b *Backend) undo(ctx context.Context, cli *client.Client, op, id string, cause error) error {
	err := fail(ctx, op, id, cause)
	if rerr := b.remove(context.WithoutCancel(ctx), cli, id); rerr != nil {
		err = errors.Join(err, leaked(op, id, rerr))
	}
	return err
}

func leaked(op, id string, err error) error {
	return &driver.Error{Code: driver.CodeLeaked, Op: op, Backend: Name, Sandbox: id, Hint: hintReap,
		Err: fmt.Errorf("container %s may be left on the engine: %w", id, err)}
}
