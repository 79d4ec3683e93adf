package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A schedule is a container with the sandboxio command in it and the engine's
// socket. The socket makes it root on the engine's host, so that is all it
// has: no network, no capability, a read-only root, nothing to listen on.
const (
	keeperBinary = "/sandboxio"
	keeperSocket = "/var/run/docker.sock"
	keeperMemory = 128 << 20
	keeperPIDs   = 64

	// settleLimit bounds the wait for a keeper to say that it started, and
	// settleTime is how long it must stay up after that.
	settleLimit = 10 * time.Second
	settleTime  = 300 * time.Millisecond
)

func keeperArgs(s driver.Schedule) ([]string, error) {
	b, err := json.Marshal(s)
	return []string{"keeper", "--backend", Name + "://" + keeperSocket, "--schedule", string(b)}, err
}

// scheduleIn reads back what keeperArgs wrote.
func scheduleIn(args []string) (driver.Schedule, error) {
	var s driver.Schedule
	i := slices.Index(args, "--schedule")
	if i < 0 || i+1 >= len(args) {
		return s, errors.New("its arguments hold no schedule")
	}
	return s, json.Unmarshal([]byte(args[i+1]), &s)
}

func validateSchedule(s driver.Schedule) error {
	errs := []error{s.Validate()}
	if !scheduleName.MatchString(s.Name) {
		errs = append(errs, driver.Invalid("name", fmt.Sprintf("%q cannot be part of a container's name", s.Name), "use 1 to 63 letters, digits, '_', '.' and '-'"))
	}
	return driver.Join(errs...)
}

// PutSchedule starts a keeper, sees it run, and only then removes those it
// replaces: at no time is there none.
func (b *Backend) PutSchedule(ctx context.Context, s driver.Schedule) (driver.ScheduleStatus, error) {
	if err := validateSchedule(s); err != nil {
		return driver.ScheduleStatus{}, named(err, "schedule", "")
	}
	cli, err := b.connect(ctx)
	if err != nil {
		return driver.ScheduleStatus{}, err
	}
	st, err := b.putSchedule(ctx, cli, s)
	return st, fail(ctx, "schedule", "", err)
}

func (b *Backend) putSchedule(ctx context.Context, cli *client.Client, s driver.Schedule) (driver.ScheduleStatus, error) {
	var none driver.ScheduleStatus
	image, err := b.keeperImage(ctx, cli)
	if err != nil {
		return none, err
	}
	before, err := b.keepers(ctx, cli, s.Name)
	if err != nil {
		return none, err
	}
	if err := settledBy(ctx, cli, s.Name, before); err != nil {
		return none, err
	}
	opts, err := b.keeperOptions(s, image)
	if err != nil {
		return none, err
	}
	id, warnings, err := b.createContainer(ctx, cli, "schedule", opts)
	if err != nil {
		return none, err
	}
	if err = refuseWarnings(warnings); err == nil {
		if _, err = cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err == nil {
			err = settle(ctx, cli, id)
		}
	}
	// Who puts the same schedule at the same time may have seen this one, and
	// replaced it already.
	if err != nil && (errors.Is(err, errStopped) || going(ctx, cli, id)) {
		err = overtaken(s.Name, err)
	}
	if err != nil {
		return none, b.undo(ctx, cli, "schedule", id, err)
	}
	for _, old := range before {
		if err := b.remove(ctx, cli, old.ID); err != nil {
			return none, leaked("schedule", old.ID, err)
		}
	}
	// The name decides between those who put one schedule at the same time:
	// who does not get it leaves no keeper behind. Those it replaces are gone,
	// so that the end of ctx must not stop it here.
	err = bounded(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := cli.ContainerRename(ctx, id, client.ContainerRenameOptions{NewName: keeperPrefix + s.Name})
		return err
	})
	if cerrdefs.IsConflict(err) || absent(err) {
		err = taken(s.Name, err)
	}
	if err != nil {
		return none, b.undo(ctx, cli, "schedule", id, err)
	}
	return driver.ScheduleStatus{Schedule: s, ID: id, Running: true, Image: image}, nil
}

// settledBy refuses a schedule whose name is a container's that it would not
// replace.
func settledBy(ctx context.Context, cli *client.Client, name string, keepers []container.Summary) error {
	res, err := cli.ContainerInspect(ctx, keeperPrefix+name, client.ContainerInspectOptions{})
	if absent(err) {
		return nil
	}
	if err == nil && !slices.ContainsFunc(keepers, func(k container.Summary) bool { return k.ID == res.Container.ID }) {
		err = taken(name, fmt.Errorf("container %s is called %s", res.Container.ID, keeperPrefix+name))
	}
	return err
}

func taken(name string, err error) error {
	return &driver.Error{Code: driver.CodeConflict, Field: "name", Hint: "give each schedule a name of its own; docker inspect " + keeperPrefix + name,
		Err: fmt.Errorf("somebody else has the schedule %q: %w", name, err)}
}

func overtaken(name string, err error) error {
	return &driver.Error{Code: driver.CodeConflict, Field: "name", Hint: "give each schedule a name of its own, and put it again; docker ps --filter label=" + driver.LabelReaper + "=" + name,
		Err: fmt.Errorf("somebody else put the schedule %q at the same time, or removed its keeper: %w", name, err)}
}

func (b *Backend) keeperOptions(s driver.Schedule, image string) (client.ContainerCreateOptions, error) {
	socket := b.keeperSocket()
	if socket == "" {
		return client.ContainerCreateOptions{}, driver.Unsupported("backend.keeper_socket", "the engine is not reached by a local socket, so its own is not known", "keeper_socket=/var/run/docker.sock")
	}
	args, err := keeperArgs(s)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	no, pids := false, int64(keeperPIDs)
	return client.ContainerCreateOptions{
		Name: keeperPrefix + s.Name + "-new-" + nonce(),
		Config: &container.Config{
			Image: image, User: "0:0", Entrypoint: []string{keeperBinary}, Cmd: args, WorkingDir: "/", Hostname: hostname,
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			StopSignal:  "SIGTERM",
			Labels: map[string]string{
				driver.LabelManaged: "true", driver.LabelRole: driver.RoleKeeper, driver.LabelReaper: s.Name,
				driver.LabelCreated: strconv.FormatInt(time.Now().Unix(), 10),
			},
		},
		HostConfig: &container.HostConfig{
			NetworkMode:    "none",
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyUnlessStopped},
			LogConfig:      container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "2"}},
			CapDrop:        []string{"ALL"},
			SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + seccompProfile},
			ReadonlyRootfs: true,
			IpcMode:        container.IPCModePrivate,
			CgroupnsMode:   container.CgroupnsModePrivate,
			Init:           &no,
			Mounts:         []mount.Mount{{Type: mount.TypeBind, Source: socket, Target: keeperSocket}},
			Resources: container.Resources{
				Memory: keeperMemory, MemorySwap: keeperMemory, CPUPeriod: cpuPeriod, CPUQuota: cpuPeriod / 2, PidsLimit: &pids,
				Ulimits: []*units.Ulimit{{Name: "core"}},
			},
		},
	}, nil
}

// settle waits until a keeper has said something and still runs a moment
// later. One that restarts has failed, and its words say why.
func settle(ctx context.Context, cli *client.Client, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, errUnsettled)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var since time.Time
	for {
		res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return unsettled(ctx, err)
		}
		said, err := logs(ctx, cli, id, 5)
		if err != nil {
			return unsettled(ctx, err)
		}
		switch c := res.Container; {
		case c.RestartCount > 0 || c.State == nil || c.State.Restarting:
			return &driver.Error{Code: driver.CodeInternal, Hint: hintSetup, Err: fmt.Errorf("the keeper does not stay up: %s", said)}
		case !c.State.Running:
			return errStopped // it would be restarted if it had ended by itself
		}
		switch {
		case said == "":
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= settleTime:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return unsettled(ctx, ctx.Err())
		}
	}
}

var errStopped = errors.New("its keeper was stopped")

var errUnsettled = fmt.Errorf("the keeper said nothing within %v", settleLimit)

func unsettled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errUnsettled) {
		return &driver.Error{Code: driver.CodeUnavailable, Hint: hintSetup, Err: errUnsettled}
	}
	return err
}

// going is whether somebody has removed a container, or is at it.
func going(ctx context.Context, cli *client.Client, id string) bool {
	res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return absent(err)
	}
	s := res.Container.State
	return s != nil && (s.Status == container.StateRemoving || s.Status == container.StateDead)
}

// logs gives the last lines that a keeper wrote.
func logs(ctx context.Context, cli *client.Client, id string, lines int) (string, error) {
	res, err := cli.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines)})
	if err != nil {
		return "", err
	}
	defer res.Close()
	raw, err := io.ReadAll(io.LimitReader(res, 64<<10))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for len(raw) >= 8 { // the engine's frames, as in stream
		n := int(raw[4])<<24 | int(raw[5])<<16 | int(raw[6])<<8 | int(raw[7])
		raw = raw[8:]
		n = min(n, len(raw))
		out.Write(raw[:n])
		raw = raw[n:]
	}
	return strings.TrimSpace(out.String()), nil
}

// keeperImage finds the image that setup made with this release's guest.
func (b *Backend) keeperImage(ctx context.Context, cli *client.Client) (string, error) {
	ref := b.opts.KeeperImage
	if ref == "" {
		digest, err := guest.Digest()
		if err != nil {
			return "", err
		}
		ref = keeperTag(digest)
	}
	res, err := cli.ImageInspect(ctx, ref)
	if absent(err) {
		return "", &driver.Error{Code: driver.CodeNotFound, Field: "keeper_image", Hint: hintSetup, Err: fmt.Errorf("the engine has no image %s", ref)}
	}
	if err != nil {
		return "", err
	}
	return res.ID, nil
}

// keepers lists the containers that keep the schedule of that name, its
// replacement under way included.
func (b *Backend) keepers(ctx context.Context, cli *client.Client, name string) ([]container.Summary, error) {
	want := map[string]string{driver.LabelManaged: "true", driver.LabelRole: driver.RoleKeeper, driver.LabelReaper: name}
	filters := client.Filters{}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		filters.Add("label", k+"="+want[k])
	}
	res, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(res.Items, func(c container.Summary) bool {
		ours := driver.HasLabels(c.Labels, want) && (c.Command == keeperBinary || strings.HasPrefix(c.Command, keeperBinary+" ")) &&
			slices.ContainsFunc(c.Names, func(n string) bool { return strings.HasPrefix(n, "/"+keeperPrefix) })
		return !ours
	}), nil
}

// Schedule reads a schedule back from its keeper.
func (b *Backend) Schedule(ctx context.Context, name string) (driver.ScheduleStatus, error) {
	cli, err := b.connect(ctx)
	if err != nil {
		return driver.ScheduleStatus{}, err
	}
	st, err := b.schedule(ctx, cli, name)
	return st, fail(ctx, "schedule", "", err)
}

func (b *Backend) schedule(ctx context.Context, cli *client.Client, name string) (driver.ScheduleStatus, error) {
	missing := &driver.Error{Code: driver.CodeNotFound, Err: fmt.Errorf("the engine keeps no schedule %q", name)}
	found, err := b.keepers(ctx, cli, name)
	if err != nil {
		return driver.ScheduleStatus{}, err
	}
	if len(found) == 0 {
		return driver.ScheduleStatus{}, missing
	}
	// Should a replacement have been cut short, the settled one counts.
	slices.SortFunc(found, func(x, y container.Summary) int { return len(x.Names[0]) - len(y.Names[0]) })
	res, err := cli.ContainerInspect(ctx, found[0].ID, client.ContainerInspectOptions{})
	if absent(err) {
		return driver.ScheduleStatus{}, missing
	}
	if err != nil {
		return driver.ScheduleStatus{}, err
	}
	c := res.Container
	s, err := scheduleIn(c.Args)
	if err != nil {
		return driver.ScheduleStatus{}, fmt.Errorf("keeper %s: %w", c.ID, err)
	}
	return driver.ScheduleStatus{Schedule: s, ID: c.ID, Image: c.Image, Running: c.State != nil && c.State.Running && !c.State.Restarting && !c.State.Paused}, nil
}

// DeleteSchedule removes every keeper of that name.
func (b *Backend) DeleteSchedule(ctx context.Context, name string) error {
	cli, err := b.connect(ctx)
	if err != nil {
		return err
	}
	found, err := b.keepers(ctx, cli, name)
	if err != nil {
		return fail(ctx, "schedule", "", err)
	}
	var errs []error
	for _, c := range found {
		if err := b.remove(ctx, cli, c.ID); err != nil {
			errs = append(errs, leaked("schedule", c.ID, err))
		}
	}
	return driver.Join(append(errs, ctx.Err())...)
}
