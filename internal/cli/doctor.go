package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/demo"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A doctor's question to a hung engine must end.
const examineTimeout = 30 * time.Second

type examination struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what would keep sandboxes from being made here",
		Long:  "Look at the policy, at Terraform and at the backend, in the order in which to repair. Nothing is changed:\nthe helper that looks at the network of a Docker engine's host is removed at once.\nExits with 1 when something is wrong.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	return c
}

func (a *app) doctor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	all := append([]examination{examinePolicy(e), examineTerraform(ctx)}, examineBackend(ctx, e)...)
	bad := 0
	for _, x := range all {
		if !x.OK {
			bad++
		}
	}
	if err := a.print(all, func(w io.Writer) {
		for _, x := range all {
			mark := "ok  "
			if !x.OK {
				mark = "FAIL"
			}
			fmt.Fprintf(w, "%s  %-16s %s\n", mark, x.Name, x.Detail)
			if x.Fix != "" {
				fmt.Fprintf(w, "      %-16s fix: %s\n", "", x.Fix)
			}
		}
	}); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d examinations failed", bad, len(all))
	}
	return nil
}

func examinePolicy(e *estate.Estate) examination {
	// That the estate is open says that every rule compiled.
	detail := fmt.Sprintf("%d rules, %s", len(e.Policy().Rules()), e.Policy().Digest())
	if f := e.Policy().Floor(); f != nil {
		detail += fmt.Sprintf(", on the floor %s, revision %d", f.Name, f.Revision)
	}
	return examination{Name: "policy", OK: true, Detail: detail}
}

func examineTerraform(ctx context.Context) examination {
	x := examination{Name: "terraform"}
	path, err := exec.LookPath("terraform")
	if err != nil {
		x.Detail, x.Fix = "not on PATH", "install Terraform 1.11 or newer, or use the Go package alone"
		return x
	}
	version, err := demo.TerraformVersion(ctx, path)
	if err != nil {
		x.Detail, x.Fix = path+": "+err.Error(), "install Terraform 1.11 or newer"
		return x
	}
	x.OK, x.Detail = true, path+", "+version
	return x
}

func examineBackend(ctx context.Context, e *estate.Estate) []examination {
	b, err := e.Backend(ctx, "")
	if err != nil {
		return []examination{failed("backend", err)}
	}
	info := b.Info()
	out := []examination{{Name: "backend", OK: true, Detail: fmt.Sprintf("%s, isolation at least %s", info.Name, info.Isolation)}}
	switch {
	case info.Simulated:
		out[0].Detail += ": simulated, which proves nothing"
	case info.Isolation <= driver.Container:
		out[0].Detail += ": no boundary for untrusted code; state its trust in every template"
	}
	ex, ok := driver.As[driver.Examiner](b)
	if !ok {
		return out
	}
	for _, f := range ex.Examine(ctx) {
		out = append(out, examination{Name: f.Name, OK: f.OK, Detail: f.Detail, Fix: f.Hint})
	}
	return out
}

func failed(name string, err error) examination {
	x := examination{Name: name, Detail: err.Error()}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		x.Fix = e.Hint
	}
	return x
}
