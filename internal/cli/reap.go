package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/prove"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) reapCommand() *cobra.Command {
	var opts reap.Options
	var labels []string
	c := &cobra.Command{
		Use:   "reap",
		Short: "Find sandboxes that should be gone, and remove them with --kill",
		Long: `Find sandboxes whose deadline has passed, that were made but never started, or
that ended and were not removed, by the backend's own clock, and on an engine what
runs of ` + "`sandboxio egress prove`" + ` have left that were killed. Without --kill nothing
is removed. A sandbox whose time has not come is never touched, unless
--max-age names an age that it has passed.`,
		Example: `  sandboxio reap
  sandboxio reap --backend docker:///var/run/docker.sock --kill
  sandboxio reap --label team=search --max-age 2h --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Labels, err = parseLabels(labels); err != nil {
				return err
			}
			if cmd.Flags().Changed("max-age") && opts.MaxAge <= 0 {
				return driver.Invalid("max-age", opts.MaxAge.String()+" is not an age", "set a positive duration, as 2h, or leave it out")
			}
			return a.reap(cmd.Context(), opts)
		},
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	c.Flags().BoolVar(&opts.Kill, "kill", false, "remove what is due; without it, only report")
	c.Flags().DurationVar(&opts.MaxAge, "max-age", 0, "also those older than this, whatever their deadline")
	c.Flags().StringArrayVar(&labels, "label", nil, "only sandboxes with this label, as name=value; repeatable")
	return c
}

func parseLabels(in []string) (map[string]string, error) {
	out := map[string]string{}
	for _, l := range in {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, driver.Invalid("label", fmt.Sprintf("%q is not name=value", l), "write --label team=search")
		}
		out[k] = v
	}
	return out, nil
}

type reapItem struct {
	Kind    string    `json:"kind"` // "sandbox", or of a dead prove "container", "network" or "image"
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Created time.Time `json:"created"`
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason"`
	Removed bool      `json:"removed"`
	Error   string    `json:"error,omitempty"`
}

func (a *app) reap(ctx context.Context, opts reap.Options) error {
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	b, err := e.Backend(ctx, "")
	if err != nil {
		return err
	}
	rep, err := reap.Sweep(ctx, b, opts)
	if err != nil && rep.Now.IsZero() {
		return err // nothing was looked at
	}
	out := struct {
		Backend string     `json:"backend"`
		Now     time.Time  `json:"now"`
		DryRun  bool       `json:"dry_run"`
		Seen    int        `json:"seen"`
		Due     []reapItem `json:"due"`
	}{rep.Backend, rep.Now, !opts.Kill, rep.Seen, []reapItem{}}
	for _, it := range rep.Items {
		item := reapItem{Kind: "sandbox", ID: it.ID, Name: it.Name, State: string(it.State), Created: it.Created, Owner: it.Owner, Reason: it.Reason, Removed: it.Removed}
		if it.Err != nil {
			item.Error = it.Err.Error()
		}
		out.Due = append(out.Due, item)
	}
	var left []prove.Left
	if len(opts.Labels) == 0 { // they have no labels that could be asked for
		var lerr error
		left, lerr = prove.Sweep(ctx, b, opts.Kill)
		err = driver.Join(err, lerr)
	}
	left = slices.DeleteFunc(left, func(l prove.Left) bool { // told already
		return slices.ContainsFunc(rep.Items, func(it reap.Item) bool { return it.ID == l.ID })
	})
	gone := 0
	for _, l := range left {
		if l.Removed {
			gone++
		}
		item := reapItem{Kind: l.Kind, ID: l.ID, Name: l.Name, Created: l.Created, Owner: l.Owner(), Reason: "left by a prove that was killed", Removed: l.Removed}
		if l.Err != nil {
			item.Error = l.Err.Error()
		}
		out.Due = append(out.Due, item)
	}
	if perr := a.print(out, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, it := range out.Due {
			did := "would be removed"
			switch {
			case it.Removed:
				did = "removed"
			case it.Error != "":
				did = "failed"
			}
			fmt.Fprintf(t, "%.12s\t%s\t%s\t%s\t%s\n", it.ID, printable(it.Name), it.State, it.Reason, did)
		}
		_ = t.Flush()
		switch {
		case opts.Kill:
			fmt.Fprintf(w, "%d of %d sandboxes removed", rep.Removed(), rep.Seen)
			if len(left) > 0 {
				fmt.Fprintf(w, ", and %d of %d objects of a prove that was killed", gone, len(left))
			}
			fmt.Fprintln(w)
		default:
			fmt.Fprintf(w, "%d of %d sandboxes are due", len(rep.Items), rep.Seen)
			if len(left) > 0 {
				fmt.Fprintf(w, ", and %d objects of a prove that was killed", len(left))
			}
			if len(out.Due) > 0 {
				fmt.Fprint(w, "; add --kill to remove them")
			} else if rep.Seen > 0 {
				fmt.Fprint(w, "; sandboxio inspect lists them")
			}
			fmt.Fprintln(w)
		}
	}); perr != nil {
		return perr
	}
	return err
}
