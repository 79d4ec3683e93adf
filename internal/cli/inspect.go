package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect [ID]",
		Short: "List sandboxes, or show one and what its programs were refused",
		Long: `Show a sandbox as its backend shows it, and what its programs tried to reach and
were refused: by host, address, port and reason, never what they sent. Without an
ID, list all sandboxes of the backend. It changes nothing and reaches into no
sandbox.

ID is a sandbox's id, 12 or more of its first digits, its name, or what
terraform import takes, as docker/4f1c0a9be27d….

What was refused is known here in mode transparent, from the sandbox's gateway. In
mode proxy only the process that created the sandbox knows it: it stands in that
process's records. Where it is not known, "refused" and "denied" are null in JSON,
and "unknown" says why. A host in the list was chosen by a program.

Exit codes: 0 found, 1 failed or not found.`,
		Example: `  sandboxio inspect
  sandboxio inspect 4f1c0a9be27d
  sandboxio inspect docker/4f1c0a9be27d --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspect(cmd.Context(), args)
		},
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	return c
}

// inspected is what inspect prints.
type inspected struct {
	Schema   string            `json:"schema"`
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Backend  string            `json:"backend"`
	State    driver.State      `json:"state"`
	Image    string            `json:"image"`
	Created  time.Time         `json:"created"`
	Deadline time.Time         `json:"deadline"`
	Detached bool              `json:"detached"`
	Facts    map[string]string `json:"facts"` // ours, by the names of their labels
	Labels   map[string]string `json:"labels"`
	Refused  *int              `json:"refused"`           // requests; null = not known here
	Denied   []driver.Denial   `json:"denied"`            // told apart; null = not known here
	Unknown  string            `json:"unknown,omitempty"` // why they are not
}

func (a *app) inspect(ctx context.Context, ids []string) error {
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	rt, err := e.Runtime(ctx, "", sandbox.Options{})
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return a.inspectAll(ctx, rt)
	}
	return a.inspectOne(ctx, rt, ids[0])
}

func (a *app) inspectOne(ctx context.Context, rt *sandbox.Runtime, id string) error {
	sb, err := rt.Attach(ctx, id)
	if errors.Is(err, driver.CodeNotFound) {
		if id, err = find(ctx, rt, id); err == nil {
			sb, err = rt.Attach(ctx, id)
		}
	}
	if err != nil {
		return err
	}
	denied, refusals := sb.Denied(ctx)
	if ctx.Err() != nil {
		return refusals
	}
	st := sb.Status()
	r := inspected{Schema: "sandboxio.inspect/v1", ID: st.ID, Name: st.Name, Backend: st.Backend, State: st.State, Image: st.Image, Created: st.Created, Deadline: st.Deadline,
		Detached: st.Detached, Facts: map[string]string{}, Labels: st.Labels}
	for k, v := range st.Facts.Labels(driver.RoleSandbox, st.Created, st.Deadline) {
		if name := strings.TrimPrefix(k, driver.LabelPrefix); v != "" && !slices.Contains([]string{driver.LabelManaged, driver.LabelRole, driver.LabelCreated, driver.LabelMaxExpires}, k) {
			r.Facts[name] = v
		}
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	switch {
	case refusals != nil: // its gateway does not answer, say: the rest is known
		r.Unknown = refusals.Error()
	case denied.Unknown:
		r.Unknown = sandbox.DenialsUnknown
	}
	if r.Unknown != "" {
		return a.print(r, r.text)
	}
	r.Refused, r.Denied = &denied.Other, []driver.Denial{}
	for _, d := range denied.Told {
		d.Host, d.Reason = strings.Map(ascii, d.Host), strings.Map(ascii, d.Reason)
		*r.Refused += d.Count
		r.Denied = append(r.Denied, d)
	}
	return a.print(r, r.text)
}

func (r inspected) text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(k, v string) {
		if v != "" {
			fmt.Fprintf(t, "%s\t%s\n", printable(k), printable(v))
		}
	}
	line("id", r.ID)
	line("name", r.Name)
	line("backend", r.Backend)
	line("state", string(r.State))
	line("image", r.Image)
	line("created", r.Created.UTC().Format(time.RFC3339))
	line("deadline", r.Deadline.UTC().Format(time.RFC3339))
	if r.Detached {
		line("detached", "yes")
	}
	for _, k := range slices.Sorted(maps.Keys(r.Facts)) {
		line(k, r.Facts[k])
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		line("label "+k, r.Labels[k])
	}
	if r.Refused == nil {
		line("refused", "not known here: "+r.Unknown)
	} else {
		line("refused", fmt.Sprintf("%d requests that are known of", *r.Refused))
	}
	for _, d := range r.Denied {
		var target []string
		if d.Host != "" {
			target = append(target, d.Host)
		}
		if d.Addr.IsValid() {
			target = append(target, d.Addr.String())
		}
		if d.Port != 0 {
			target = append(target, fmt.Sprintf("port %d", d.Port))
		}
		fmt.Fprintf(t, "  %s\t%s, %d times, last %s\n", strings.Join(target, " "), d.Reason, d.Count, d.Last.UTC().Format(time.RFC3339))
	}
	_ = t.Flush()
}
