package docker

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// swept tells a creator whose container is gone that it was taken away: one that
// has not been started does not go by itself.
func (b *Backend) swept(ctx context.Context, cli *client.Client, id string, err error) error {
	return b.vanished(ctx, err, func(ctx context.Context) error {
		_, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		return err
	})
}

// sweptWay is swept for what leads out. A gateway may go by itself; its network
// does not.
func (b *Backend) sweptWay(ctx context.Context, cli *client.Client, w *way, err error) error {
	if w == nil || w.inside == "" {
		return err
	}
	return b.vanished(ctx, err, func(ctx context.Context) error {
		_, err := cli.NetworkInspect(ctx, w.inside, client.NetworkInspectOptions{})
		if err == nil {
			_, err = cli.NetworkInspect(ctx, w.uplink, client.NetworkInspectOptions{})
		}
		return err
	})
}

func (b *Backend) vanished(ctx context.Context, err error, look func(context.Context) error) error {
	if err == nil || ctx.Err() != nil || !absent(bounded(ctx, look)) {
		return err
	}
	return &driver.Error{Code: driver.CodeConflict, Hint: "create it again; `sandboxio doctor`, should the engine be slow", Err: fmt.Errorf(
		"what was made of the sandbox was removed before it was started, as a sweep does with what is not started in time (after %v without a gateway): %w", driver.StartGrace, err)}
}
