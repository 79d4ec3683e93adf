package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// leastDigits is how many of an id's first digits are told of, and taken.
const leastDigits = 12

// find gives the id of the one sandbox that is meant: by its id, the beginning
// of it, its name, or any of them behind the backend's name, as terraform import
// has it. Codes: not-found, invalid, and those of List.
func find(ctx context.Context, rt *sandbox.Runtime, meant string) (string, error) {
	return choose(rt.Info().Name, meant, rt.List(ctx, nil))
}

// choose is find among the sandboxes of the backend of that name.
func choose(name, meant string, all iter.Seq2[sandbox.Status, error]) (string, error) {
	short := strings.TrimPrefix(meant, name+"/")
	var begin []string
	for st, err := range all {
		switch {
		case err != nil:
			return "", err
		case st.ID == short || st.Name != "" && st.Name == short:
			return st.ID, nil
		case len(short) >= leastDigits && strings.HasPrefix(st.ID, short):
			begin = append(begin, st.ID)
		}
	}
	const hint = "sandboxio inspect lists the sandboxes"
	switch {
	case len(begin) == 1:
		return begin[0], nil
	case len(begin) > 1:
		return "", &driver.Error{Code: driver.CodeInvalid, Op: "inspect", Backend: name, Field: "id", Hint: "give more digits; " + hint + ", with --json by their whole ids",
			Err: fmt.Errorf("%d sandboxes have an id that begins with %q", len(begin), short)}
	}
	why := fmt.Errorf("no sandbox has the id or name %q", short)
	if other, _, ok := strings.Cut(short, "/"); ok {
		why = fmt.Errorf("%q is of the backend %q, and %q was asked", short, other, name)
	} else if len(short) < leastDigits {
		why = fmt.Errorf("%w; of an id, %d digits are needed", why, leastDigits)
	}
	return "", &driver.Error{Code: driver.CodeNotFound, Op: "inspect", Backend: name, Hint: hint, Err: why}
}

// listed is one line of what inspect prints without an id.
type listed struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	State    driver.State `json:"state"`
	Created  time.Time    `json:"created"`
	Deadline time.Time    `json:"deadline"`
	Detached bool         `json:"detached"`
	Owner    string       `json:"owner"`
	Template string       `json:"template"`
}

func (a *app) inspectAll(ctx context.Context, rt *sandbox.Runtime) error {
	out := struct {
		Schema    string   `json:"schema"`
		Backend   string   `json:"backend"`
		Sandboxes []listed `json:"sandboxes"`
	}{"sandboxio.inspect.list/v1", rt.Info().Name, []listed{}}
	for st, err := range rt.List(ctx, nil) {
		if err != nil {
			return err
		}
		out.Sandboxes = append(out.Sandboxes, listed{st.ID, st.Name, st.State, st.Created, st.Deadline, st.Detached, st.Facts.Owner, st.Facts.Template})
	}
	return a.print(out, func(w io.Writer) {
		if len(out.Sandboxes) == 0 {
			fmt.Fprintf(w, "no sandboxes on %s\n", out.Backend)
			return
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tNAME\tSTATE\tDEADLINE\tOWNER\tTEMPLATE")
		for _, s := range out.Sandboxes {
			fmt.Fprintf(t, "%.*s\t%s\t%s\t%s\t%s\t%s\n", leastDigits, s.ID, printable(s.Name), s.State, s.Deadline.UTC().Format(time.RFC3339), printable(s.Owner), printable(s.Template))
		}
		_ = t.Flush()
	})
}
