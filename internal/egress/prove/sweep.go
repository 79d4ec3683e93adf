package prove

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Which runs live, only the engine can tell to everybody: its users may be
// other machines'. A run's first container is started before there is a network
// and lives by a connection of the run's own process, to its end. So a run is
// dead, or about to remove the rest itself, that has networks and no container
// which runs; and so is one that had time enough to start it, and one that has
// lived for longer than any may.
const (
	// runLimit bounds a run.
	runLimit = 30 * time.Minute

	// unheldLimit is how long a run may have an image, or a container too, and
	// none that runs.
	unheldLimit = 30 * time.Second
)

// kinds, in the order of removal: gateways of sandboxes and containers are on
// the networks, and containers are made from the image.
var kinds = []string{"sandbox", "container", "network", "image"}

// Left is something that a dead run has left on the engine.
type Left struct {
	Kind    string // one of kinds
	ID      string
	Name    string
	Run     string
	Created time.Time
	Removed bool
	Err     error // why it could not be removed
}

// Owner is the owner of the run's sandboxes.
func (l Left) Owner() string { return owns(l.Run) }

// remains are what carries the label of one run.
type remains struct {
	held  bool      // a container of it runs
	begun bool      // it has networks
	since time.Time // the first of its containers was made; zero without
	last  time.Time // something of it was made
	left  []Left
}

// dead reports whether the run has ended without removing this.
func (r *remains) dead(now time.Time, unheld time.Duration) bool {
	switch {
	case r.held:
		return now.Sub(r.since) > runLimit+unheld
	case r.begun:
		return true
	}
	return now.Sub(r.last) > unheld
}

func (r *remains) add(l Left) {
	r.left = append(r.left, l)
	if l.Created.After(r.last) {
		r.last = l.Created
	}
	r.begun = r.begun || l.Kind == "network"
	if l.Kind == "container" && (r.since.IsZero() || l.Created.Before(r.since)) {
		r.since = l.Created
	}
}

// Sweep lists what runs whose process is dead have left on an engine, whoever's
// they were, and removes it if asked to. Nothing of a run that lives is in it.
// A backend that is no such engine has nothing. Failures stand in the list, and
// are joined in the error.
func Sweep(ctx context.Context, b driver.Backend, kill bool) ([]Left, error) {
	return sweep(ctx, b, kill, unheldLimit)
}

func sweep(ctx context.Context, b driver.Backend, kill bool, unheld time.Duration) ([]Left, error) {
	clock, ok := driver.As[driver.Clock](b)
	if !ok {
		return nil, nil
	}
	now, err := clock.Now(ctx) // connects
	if err != nil {
		return nil, err
	}
	cli, ok := driver.As[*client.Client](b)
	if !ok {
		return nil, nil
	}
	all, err := look(ctx, cli)
	if err != nil {
		return nil, err
	}
	var out []Left
	var errs []error
	for run, r := range all {
		if !r.dead(now, unheld) {
			continue
		}
		left, err := sandboxesOf(ctx, b, run)
		if err != nil {
			return out, err
		}
		left = append(left, r.left...)
		slices.SortStableFunc(left, func(a, b Left) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
		if kill {
			errs = append(errs, removeAll(ctx, b, cli, left))
		}
		out = append(out, left...)
	}
	return out, errors.Join(errs...)
}

var probeTag = regexp.MustCompile(`^sandboxio-probe:([0-9a-f]{8})$`)

// look finds what runs have made, by run: what has the label, and is what runs
// make. An image can have any label, and what is made from it has it too.
func look(ctx context.Context, cli *client.Client) (map[string]*remains, error) {
	all := map[string]*remains{}
	of := func(run string) *remains {
		if all[run] == nil {
			all[run] = &remains{}
		}
		return all[run]
	}
	networks, err := cli.NetworkList(ctx, client.NetworkListOptions{Filters: client.Filters{}.Add("label", label)})
	if err != nil {
		return nil, err
	}
	for _, n := range networks.Items {
		if run := n.Labels[label]; run != "" && strings.HasPrefix(n.Name, networkPrefix) {
			of(run).add(Left{Kind: "network", ID: n.ID, Name: n.Name, Run: run, Created: n.Created})
		}
	}
	images, err := cli.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", "sandboxio-probe")})
	if err != nil {
		return nil, err
	}
	for _, i := range images.Items {
		for _, tag := range i.RepoTags {
			if m := probeTag.FindStringSubmatch(tag); m != nil {
				of(m[1]).add(Left{Kind: "image", ID: tag, Name: tag, Run: m[1], Created: time.Unix(i.Created, 0)})
			}
		}
	}
	// Last: the container of a run is there before its network.
	containers, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", label)})
	if err != nil {
		return nil, err
	}
	for _, c := range containers.Items {
		if program, _, _ := strings.Cut(c.Command, " "); program != binary || c.Labels[label] == "" {
			continue
		}
		r := of(c.Labels[label])
		r.held = r.held || c.State == container.StateRunning || c.State == container.StatePaused
		r.add(Left{Kind: "container", ID: c.ID, Name: strings.TrimPrefix(strings.Join(c.Names, " "), "/"), Run: c.Labels[label], Created: time.Unix(c.Created, 0)})
	}
	return all, nil
}

// owns is the owner of a run's sandboxes.
func owns(run string) string { return "prove-" + run }

func sandboxesOf(ctx context.Context, b driver.Backend, run string) ([]Left, error) {
	var out []Left
	for st, err := range b.List(ctx, map[string]string{driver.LabelOwner: owns(run)}) {
		if err != nil {
			return nil, err
		}
		out = append(out, Left{Kind: "sandbox", ID: st.ID, Name: st.Name, Run: run, Created: st.Created})
	}
	return out, nil
}

// removeAll removes what is left of one run.
func removeAll(ctx context.Context, b driver.Backend, cli *client.Client, left []Left) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	var errs []error
	for i := range left {
		l := &left[i]
		switch l.Kind {
		case "sandbox":
			l.Err = killSandbox(ctx, b, l.ID)
		case "container":
			l.Err = removeContainer(ctx, cli, l.ID)
		case "network":
			l.Err = removeNetwork(ctx, cli, l.ID)
		case "image":
			l.Err = removeImage(ctx, cli, l.ID)
		}
		l.Removed = l.Err == nil
		if l.Err != nil {
			errs = append(errs, fmt.Errorf("%s %s of a run that was killed: %w", l.Kind, l.Name, l.Err))
		}
	}
	return errors.Join(errs...)
}

func killSandbox(ctx context.Context, b driver.Backend, id string) error {
	sb, err := b.Attach(ctx, id)
	if errors.Is(err, driver.CodeNotFound) || errors.Is(err, driver.CodeGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return sb.Kill(ctx)
}

// removeNetwork waits for those who are on it and are being removed.
func removeNetwork(ctx context.Context, cli *client.Client, id string) error {
	for {
		_, err := cli.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
		if err == nil || cerrdefs.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// removeContainer returns once it is gone, and not only going.
func removeContainer(ctx context.Context, cli *client.Client, id string) error {
	for {
		_, err := cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func removeImage(ctx context.Context, cli *client.Client, tag string) error {
	_, err := cli.ImageRemove(ctx, tag, client.ImageRemoveOptions{Force: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}
