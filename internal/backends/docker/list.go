package docker

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

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
		for _, c := range res.Items {
			if !driver.HasLabels(driver.OwnLabels(c.Labels), labels) || len(c.Names) == 0 {
				continue
			}
			entrypoint, _, _ := strings.Cut(c.Command, " ")
			deadline, _, ok := deadlineOf(c.Names[0], c.Labels)
			if !ok || !managed(c.Labels, entrypoint, c.Mounts) {
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
