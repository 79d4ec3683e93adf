package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// label marks what the demo makes itself, beside the sandboxes.
const label = "sandboxio-demo"

// engine looks past the driver: what it says is the daemon's own word.
type engine struct {
	c      *client.Client
	before map[string]string
	made   []func(context.Context) error // removals, in order of creation
}

func openEngine(ctx context.Context, b driver.Backend) (*engine, error) {
	// The backend connects on first use; asking for the time is one.
	if clock, ok := driver.As[driver.Clock](b); ok {
		if _, err := clock.Now(ctx); err != nil {
			return nil, err
		}
	}
	c, ok := driver.As[*client.Client](b)
	if !ok {
		return nil, errors.New("the backend does not give its native client: the demo cannot look past it")
	}
	return &engine{c: c}, nil
}

func (e *engine) host() string { return e.c.DaemonHost() }

// objects lists all containers, networks and volumes of the daemon, whoever
// made them.
func (e *engine) objects(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	cs, err := e.c.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, err
	}
	for _, c := range cs.Items {
		all["container "+c.ID[:12]] = strings.Join(c.Names, " ") + " " + string(c.State)
	}
	ns, err := e.c.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range ns.Items {
		all["network "+n.ID[:12]] = n.Name
	}
	vs, err := e.c.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range vs.Items {
		all["volume "+v.Name] = v.Driver
	}
	return all, nil
}

// helperVolume is what may be new: the guest, named by its digest.
func helperVolume(key string) bool { return strings.HasPrefix(key, "volume sandboxio-guest-") }

// diff says what is there now and was not, or the other way round.
func (e *engine) diff(ctx context.Context) (string, error) {
	now, err := e.objects(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if _, ok := e.before[k]; !ok && !helperVolume(k) {
			fmt.Fprintf(&b, "+ %s %s\n", k, now[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.before)) {
		if _, ok := now[k]; !ok && !helperVolume(k) {
			fmt.Fprintf(&b, "- %s %s\n", k, e.before[k])
		}
	}
	return b.String(), nil
}

// state is the container's state, "" once it is gone.
func (e *engine) state(ctx context.Context, id string) (string, error) {
	c, err := e.c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(c.Container.State.Status), nil
}

// processes counts the container's processes; none when it does not run.
func (e *engine) processes(ctx context.Context, id string) (int, error) {
	top, err := e.c.ContainerTop(ctx, id, client.ContainerTopOptions{})
	if err != nil {
		state, serr := e.state(ctx, id)
		if serr != nil {
			return 0, serr
		}
		if state == "running" || state == "paused" {
			return 0, err
		}
		return 0, nil
	}
	return len(top.Processes), nil
}

// run starts a container of the demo's own and remembers to remove it.
func (e *engine) run(ctx context.Context, image, network string, argv []string) (string, error) {
	created, err := e.c.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: argv[:1], Cmd: argv[1:], Labels: map[string]string{label: "true"}},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(network),
			CapDrop:     []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
		},
	})
	if err != nil {
		return "", err
	}
	e.made = append(e.made, func(ctx context.Context) error { return e.remove(ctx, created.ID) })
	_, err = e.c.ContainerStart(ctx, created.ID, client.ContainerStartOptions{})
	return created.ID, err
}

// finish waits for a container's end and gives its output.
func (e *engine) finish(ctx context.Context, id string) (string, error) {
	wait := e.c.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-wait.Error:
		return "", err
	case <-wait.Result:
	}
	return e.logs(ctx, id)
}

func (e *engine) logs(ctx context.Context, id string) (string, error) {
	r, err := e.c.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	var b bytes.Buffer
	if _, err := stdcopy.StdCopy(&b, &b, io.LimitReader(r, 1<<20)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// address is the container's own on a network.
func (e *engine) address(ctx context.Context, id, network string) (netip.Addr, error) {
	c, err := e.c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return netip.Addr{}, err
	}
	ep, ok := c.Container.NetworkSettings.Networks[network]
	if !ok || !ep.IPAddress.IsValid() {
		return netip.Addr{}, fmt.Errorf("the canary has no address on %s", network)
	}
	return ep.IPAddress, nil
}

func (e *engine) network(ctx context.Context, name string) error {
	n, err := e.c.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{label: "true"}})
	if err != nil {
		return err
	}
	e.made = append(e.made, func(ctx context.Context) error {
		_, err := e.c.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
	return nil
}

func (e *engine) remove(ctx context.Context, id string) error {
	_, err := e.c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // gone, or on its way
		return nil
	}
	return err
}

// clean removes what the demo itself made, last first.
func (e *engine) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var errs []error
	for _, remove := range slices.Backward(e.made) {
		errs = append(errs, remove(ctx))
	}
	e.made = nil
	return driver.Join(errs...)
}

// until polls every 100 ms until done says so, and gives the time it took.
func until(ctx context.Context, limit time.Duration, done func() (bool, error)) (time.Duration, error) {
	t0 := time.Now()
	for {
		ok, err := done()
		if err != nil || ok {
			return time.Since(t0), err
		}
		if time.Since(t0) > limit {
			return time.Since(t0), fmt.Errorf("not within %v", limit)
		}
		select {
		case <-ctx.Done():
			return time.Since(t0), ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
