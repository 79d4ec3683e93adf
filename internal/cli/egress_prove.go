package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/prove"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) egressProveCommand() *cobra.Command {
	var o prove.Options
	var modes []string
	var file string
	c := &cobra.Command{
		Use:   "prove",
		Short: "Show on a live engine what an allowlist stops",
		Long: `Put a sandbox before canaries on the engine, try every way out in a catalogue from
inside, without a network and under an allowlist in both modes, and tell what came
to the canaries. The same attempts are made first from a container that nothing is
taken from: what does not come through there is not applicable, and never closed.
What was made on the engine is removed.

Exit codes: 0 all that can come through is closed and what is allowed came through,
1 failed, 2 an attempt is open or could not be finished, a control is closed, or
nothing could be shown. With --only, the same is said of the named attempts alone.`,
		Example: `  sandboxio egress prove
  sandboxio egress prove --backend 'docker://?runtime=runsc' --mode transparent --evidence evidence.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, m := range modes {
				if !slices.Contains(prove.Modes(), prove.Mode(m)) {
					return driver.Invalid("network.mode", fmt.Sprintf("%q is no mode", m), "use deny, transparent or proxy")
				}
				o.Modes = append(o.Modes, prove.Mode(m))
			}
			return a.egressProve(cmd.Context(), o, file)
		},
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	c.Flags().StringSliceVar(&modes, "mode", nil, "what to prove: deny, transparent, proxy (default: all)")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "names of attempts, of which alone something is shown (default: all)")
	c.Flags().StringVar(&o.Probe, "probe", "", "path of sandboxio-probe for the engine's architecture (default: beside this program)")
	c.Flags().StringVar(&file, "evidence", "", "write the evidence to this file, as --json prints it")
	c.Flags().StringVar(&o.Image, "image", "", "the sandbox's image (default: one with nothing in it)")
	return c
}

func (a *app) egressProve(ctx context.Context, o prove.Options, file string) error {
	config, err := estate.FromDSN(a.backend)
	if err != nil {
		return err
	}
	if config.Docker == nil {
		return driver.Invalid("backend", strings.SplitN(a.backend, ":", 2)[0]+" is no engine that canaries can be put on", "write --backend docker://")
	}
	if o.Probe == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.Probe = filepath.Join(filepath.Dir(self), "sandboxio-probe")
	}
	o.Version, o.Runtime = a.version, config.Docker.Runtime
	o.Progress = func(s string) { fmt.Fprintln(a.Err, s) }
	o.Open = func(ctx context.Context, at prove.Site) (driver.Backend, error) {
		return openAt(ctx, *config.Docker, at)
	}
	keep := func(prove.Evidence) error { return nil }
	if file != "" { // it can be written, as is seen before minutes are spent
		kept, err := os.CreateTemp(filepath.Dir(file), ".evidence-*")
		if err != nil {
			return driver.Invalid("evidence", err.Error(), "name a file in a directory that can be written to")
		}
		defer os.Remove(kept.Name()) // unless it got its name
		defer kept.Close()
		keep = func(e prove.Evidence) error {
			if err := errors.Join(json.NewEncoder(kept).Encode(e), kept.Chmod(0o644), kept.Close()); err != nil {
				return err
			}
			return os.Rename(kept.Name(), file)
		}
	}
	e, err := prove.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := keep(e); err != nil {
		return err
	}
	if err := a.print(e, func(w io.Writer) { e.Text(w) }); err != nil {
		return err
	}
	for _, p := range e.Wrong {
		fmt.Fprintln(a.Err, p)
	}
	if !e.Proven {
		return exitDenied
	}
	return nil
}

// openAt opens the engine with its gateways at a site.
func openAt(ctx context.Context, d estate.Docker, at prove.Site) (driver.Backend, error) {
	if at != (prove.Site{}) {
		d.Uplink, d.DNS = at.Uplink, at.DNS
	}
	e, err := estate.Open(ctx, estate.Config{Docker: &d})
	if err != nil {
		return nil, err
	}
	return e.Backend(ctx, "")
}
