package docker

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// List yields our sandboxes whose labels contain all of labels. The engine
// filters, and everything it gives is judged again here.
func (b *Backend) List(ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
	return func(yield func(driver.Status, error) bool) {
		cli, err := b.connect(ctx)
		if err != nil {
			yield(driver.Status{}, err)
			return
		}
		filters := client.Filters{}.Add("label", driver.LabelManaged+"=true", driver.LabelRole+"="+driver.RoleSandbox)
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			filters.Add("label", k+"="+labels[k])
		}
		res, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
		if err != nil {
			yield(driver.Status{}, fail(ctx, "list", "", err))
			return
		}
		rest, err := b.listRemains(ctx, cli, labels)
		if err != nil {
			yield(driver.Status{}, fail(ctx, "list", "", err))
			return
		}
		for _, st := range rest {
			if !yield(st, nil) {
				return
			}
		}
		for _, c := range res.Items {
			if !driver.HasLabels(driver.OwnLabels(c.Labels), labels) || len(c.Names) == 0 {
				continue
			}
			deadline, _, ok := deadlineOf(c.Names[0], c.Labels)
			if !ok || !managed(c.Labels, programOf(c), c.Mounts) {
				continue
			}
			st := statusOf(c.ID, c.Names[0], c.Labels, deadline)
			st.State, st.Image, st.Created = stateOf(c.State), c.Image, time.Unix(c.Created, 0)
			if st.State == driver.StateExited {
				// Only an inspection tells when it ended.
				full, err := b.inspect(ctx, cli, c.ID)
				if driver.CodeOf(fail(ctx, "list", c.ID, err)) == driver.CodeNotFound {
					continue // it went meanwhile
				}
				switch {
				case err == nil:
					st = full.Status
				case ctx.Err() != nil:
					yield(driver.Status{}, ctx.Err())
					return
				default: // one that cannot be looked at must not hide the others; it ended after this
					st.Ended = st.Created
				}
			}
			if !yield(st, nil) {
				return
			}
		}
	}
}

// listRemains lists what is left of sandboxes whose container is not there.
func (b *Backend) listRemains(ctx context.Context, cli *client.Client, labels map[string]string) ([]driver.Status, error) {
	containers, networks, err := b.setOf(ctx, cli, "")
	if err != nil {
		return nil, err
	}
	var out []driver.Status
	for _, r := range remains(containers, networks) {
		if driver.HasLabels(r.native, labels) {
			out = append(out, r.Status)
		}
	}
	return out, nil
}

// programOf is what a listed container runs.
func programOf(c container.Summary) string {
	program, _, _ := strings.Cut(c.Command, " ")
	return program
}
