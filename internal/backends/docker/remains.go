package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// closeAfter removes what a failed call made of a way, whether or not the
// caller still waits, and gives the error for both.
func (b *Backend) closeAfter(ctx context.Context, cli *client.Client, w *way, op string, cause error) error {
	err := fail(ctx, op, "", cause)
	if w.heard != nil {
		w.heard.close()
	}
	if rerr := b.removeSet(context.WithoutCancel(ctx), cli, w.set); rerr != nil {
		err = errors.Join(err, rerr)
	}
	return err
}

// removeSet removes all that carries a set: the sandbox and its gateway, and
// then their networks, which would not go before.
func (b *Backend) removeSet(ctx context.Context, cli *client.Client, set string) error {
	containers, networks, err := b.findSet(ctx, cli, set)
	if err != nil {
		return leaked("kill", "of the set "+set, err)
	}
	errs := make([]error, len(containers)+len(networks))
	var all sync.WaitGroup
	for i, c := range containers {
		all.Go(func() {
			if err := b.remove(ctx, cli, c.ID); err != nil {
				errs[i] = leaked("kill", c.ID, err)
			}
		})
	}
	all.Wait()
	for i, n := range networks {
		all.Go(func() { errs[len(containers)+i] = b.removeNetwork(ctx, cli, n.ID) })
	}
	all.Wait()
	return driver.Join(errs...)
}

// findSet is setOf of an engine that may fail to answer: what it does not tell
// of would be left.
func (b *Backend) findSet(ctx context.Context, cli *client.Client, set string) ([]container.Summary, []network.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, b.removeLimit)
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		containers, networks, err := b.setOf(ctx, cli, set)
		if err == nil {
			return containers, networks, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// setOf lists what carries a set.
func (b *Backend) setOf(ctx context.Context, cli *client.Client, set string) ([]container.Summary, []network.Summary, error) {
	want := map[string]string{driver.LabelManaged: "true"}
	filters := client.Filters{}.Add("label", driver.LabelManaged+"=true")
	if set != "" {
		want[labelSet] = set
		filters.Add("label", labelSet+"="+set)
	}
	filters.Add("label", labelSet)
	var cs client.ContainerListResult
	var ns client.NetworkListResult
	var errs [2]error
	var all sync.WaitGroup
	all.Go(func() {
		errs[0] = bounded(ctx, func(ctx context.Context) (err error) {
			cs, err = cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
			return err
		})
	})
	all.Go(func() {
		errs[1] = bounded(ctx, func(ctx context.Context) (err error) {
			ns, err = cli.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
			return err
		})
	})
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, nil, err
	}
	// What the engine gives is judged again: it may ignore a filter.
	var containers []container.Summary
	var networks []network.Summary
	for _, c := range cs.Items {
		// An image can have any label; it cannot have our programs and volume.
		ours := isPart(c.Labels, programOf(c)) || managed(c.Labels, programOf(c), c.Mounts)
		if ours && driver.HasLabels(c.Labels, want) && c.Labels[labelSet] != "" {
			containers = append(containers, c)
		}
	}
	for _, n := range ns.Items {
		if driver.HasLabels(n.Labels, want) && n.Labels[labelSet] != "" && n.Labels[driver.LabelRole] == driver.RoleNetwork {
			networks = append(networks, n)
		}
	}
	return containers, networks, nil
}

// removeNetwork returns once the engine no longer knows a network. What
// strangers have put on it is taken off first.
func (b *Backend) removeNetwork(ctx context.Context, cli *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, b.removeLimit)
	defer cancel()
	wait := 5 * time.Millisecond
	var last error
	for {
		err := bounded(ctx, func(ctx context.Context) error {
			_, err := cli.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
			return err
		})
		if err == nil || absent(err) {
			return nil
		}
		last = err
		if res, err := cli.NetworkInspect(ctx, id, client.NetworkInspectOptions{}); err == nil {
			for c := range res.Network.Containers {
				_, _ = cli.NetworkDisconnect(ctx, id, client.NetworkDisconnectOptions{Container: c, Force: true})
			}
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, 250*time.Millisecond)
		case <-ctx.Done():
			return &driver.Error{Code: driver.CodeLeaked, Op: "kill", Backend: Name, Hint: hintReap, Err: fmt.Errorf("network %s may be left on the engine: %w", id, last)}
		}
	}
}

// isPart reports whether a container runs the gateway's program for a sandbox:
// as its gateway, or to look at the host.
func isPart(labels map[string]string, entrypoint string) bool {
	return labels[driver.LabelManaged] == "true" && labels[labelSet] != "" && entrypoint == boot.Binary
}

// isGateway reports whether a container is a gateway of ours: its labels, and
// its program.
func isGateway(labels map[string]string, entrypoint string) bool {
	return isPart(labels, entrypoint) && labels[driver.LabelRole] == driver.RoleGateway
}

// remnant is a set without a sandbox.
type remnant struct {
	driver.Status
	set    string
	native map[string]string // labels, by which it is asked for as the sandbox would be
}

// remains are the sets without a sandbox: of one that is being made, or whose
// creator was killed before it was, or that has ended by itself. Each is listed
// as a sandbox that never started, so that a sweep finds it: under the lowest id
// of its containers, else of its networks, in whatever order the engine gives
// them.
func remains(containers []container.Summary, networks []network.Summary) []remnant {
	known := map[string]bool{}
	for _, c := range containers {
		if managed(c.Labels, programOf(c), c.Mounts) {
			known[c.Labels[labelSet]] = true
		}
	}
	var out []remnant
	add := func(id, name string, labels map[string]string) {
		if set := labels[labelSet]; !known[set] {
			if r, ok := remnantOf(id, name, labels); ok {
				known[set] = true
				out = append(out, r)
			}
		}
	}
	for _, c := range slices.SortedFunc(slices.Values(containers), func(a, b container.Summary) int { return strings.Compare(a.ID, b.ID) }) {
		if isPart(c.Labels, programOf(c)) && len(c.Names) > 0 {
			add(c.ID, c.Names[0], c.Labels)
		}
	}
	for _, n := range slices.SortedFunc(slices.Values(networks), func(a, b network.Summary) int { return strings.Compare(a.ID, b.ID) }) {
		add(n.ID, n.Name, n.Labels)
	}
	return out
}

func remnantOf(id, name string, labels map[string]string) (remnant, bool) {
	created, err := strconv.ParseInt(labels[driver.LabelCreated], 10, 64)
	if err != nil {
		return remnant{}, false
	}
	expires, err := strconv.ParseInt(labels[driver.LabelMaxExpires], 10, 64)
	if err != nil {
		return remnant{}, false
	}
	r := remnant{statusOf(id, name, labels, time.Unix(expires, 0)), labels[labelSet], maps.Clone(driver.OwnLabels(labels))}
	r.State, r.Created = driver.StateCreated, time.Unix(created, 0)
	r.native[driver.LabelRole] = driver.RoleSandbox
	return r, true
}

// attachRemains finds a set without a sandbox by the id of any of its parts: the
// one that it was listed under may be gone.
func (b *Backend) attachRemains(ctx context.Context, cli *client.Client, id string) (*sandbox, error) {
	containers, networks, err := b.setOf(ctx, cli, "")
	if err != nil {
		return nil, err
	}
	sets := map[string]bool{}
	for _, c := range containers {
		sets[c.Labels[labelSet]] = sets[c.Labels[labelSet]] || c.ID == id
	}
	for _, n := range networks {
		sets[n.Labels[labelSet]] = sets[n.Labels[labelSet]] || n.ID == id
	}
	for _, r := range remains(containers, networks) {
		if sets[r.set] {
			return &sandbox{b: b, cli: cli, id: r.ID, set: r.set, remains: true, joining: make(chan struct{}, 1), status: r.Status}, nil
		}
	}
	return nil, &driver.Error{Code: driver.CodeNotFound, Err: errForeign}
}
