package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

const (
	createLimit = 60 * time.Second

	// createGrace is how long an answer to a create is waited for after the
	// caller went away: without it nobody knows what to remove.
	createGrace = 5 * time.Second

	// searchLimit is how long a container whose create got no answer at all
	// is looked for: the engine may still be making it.
	searchLimit = 3 * time.Second
)

// createContainer makes a container, and does not give up on the answer: a
// request that was sent may have made one, whoever has stopped waiting. The
// name must be this call's alone, since it is how a lost one is found.
func (b *Backend) createContainer(ctx context.Context, cli *client.Client, op string, opts client.ContainerCreateOptions) (id string, warnings []string, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createLimit)
	defer cancel()
	type answer struct {
		res client.ContainerCreateResult
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		res, err := cli.ContainerCreate(call, opts)
		answered <- answer{res, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		grace := time.AfterFunc(b.createGrace, cancel)
		a = <-answered
		grace.Stop()
	}
	if a.err == nil && a.res.ID == "" {
		a.err = errors.New("the engine gave no id")
	}
	switch {
	case a.err == nil && ctx.Err() != nil:
		return "", nil, b.undo(ctx, cli, op, a.res.ID, ctx.Err())
	case a.err == nil:
		return a.res.ID, a.res.Warnings, nil
	case refusedOutright(a.err):
		return "", nil, fail(ctx, op, "", a.err)
	}
	err = fail(ctx, op, "", a.err)
	if serr := b.search(context.WithoutCancel(ctx), cli, opts.Name); serr != nil {
		err = errors.Join(err, leaked(op, opts.Name, serr))
	}
	return "", nil, err
}

// search removes the container of that name, should it exist or come to.
func (b *Backend) search(ctx context.Context, cli *client.Client, name string) error {
	for end := time.Now().Add(b.searchLimit); ; time.Sleep(50 * time.Millisecond) {
		err := bounded(ctx, func(ctx context.Context) error {
			_, err := cli.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
			return err
		})
		if err == nil {
			return b.remove(ctx, cli, name)
		}
		if time.Now().After(end) {
			if absent(err) {
				return nil
			}
			return err
		}
	}
}

// refusedOutright reports whether the engine, or the way to it, said no
// before anything was made.
func refusedOutright(err error) bool {
	text := err.Error()
	return absent(err) || cerrdefs.IsConflict(err) || cerrdefs.IsInvalidArgument(err) || cerrdefs.IsUnauthorized(err) ||
		cerrdefs.IsPermissionDenied(err) || cerrdefs.IsNotImplemented(err) ||
		strings.Contains(text, "Cannot connect to the Docker daemon") || strings.Contains(text, "failed to connect to the docker API") ||
		strings.Contains(text, "permission denied while trying to connect")
}
