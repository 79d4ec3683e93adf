package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) setupCommand() *cobra.Command {
	setup := &cobra.Command{Use: "setup", Short: "Give a backend what sandboxes need there"}
	var o estate.SetupOptions
	c := &cobra.Command{
		Use:   "docker",
		Short: "Bring the guest, the gateway and the keeper to a Docker engine",
		Long: `Bring the guest, the gateway and the keeper to a Docker engine, from the binaries
of this release: a read-only volume named by the guest's digest, and images for
allowlists and reaper schedules. No registry and no builder are needed. It can be repeated; what is
there and right is left alone.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.setupDocker(cmd.Context(), o) },
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	c.Flags().StringVar(&o.Guest, "guest", "", "path of sandboxio-guest (default: beside this program)")
	c.Flags().StringVar(&o.Gateway, "gateway", "", "path of sandboxio-gateway (default: beside this program)")
	c.Flags().StringVar(&o.CLI, "keeper", "", "path of a static linux sandboxio for reaper schedules (default: this program, on linux)")
	setup.AddCommand(c)
	return setup
}

func (a *app) setupDocker(ctx context.Context, o estate.SetupOptions) error {
	c, err := estate.FromDSN(a.backend)
	if err != nil {
		return err
	}
	if c.Docker == nil {
		return driver.Invalid("backend", fmt.Sprintf("%s is no Docker engine", a.backend), "write --backend docker://")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if o.Guest == "" {
		o.Guest = filepath.Join(filepath.Dir(self), "sandboxio-guest")
	}
	if o.Gateway == "" {
		o.Gateway = filepath.Join(filepath.Dir(self), "sandboxio-gateway")
	}
	if o.CLI == "" && runtime.GOOS == "linux" {
		o.CLI = self
	}
	o.Progress = func(s string) { fmt.Fprintln(a.Err, s) }
	rep, err := estate.SetupDocker(ctx, c, o)
	if err != nil {
		return err
	}
	out := struct {
		Guest   string   `json:"guest_digest"`
		Volume  string   `json:"volume"`
		Gateway string   `json:"gateway_image"`
		Keeper  string   `json:"keeper_image"`
		Changed []string `json:"changed"`
	}{rep.Guest, rep.Volume, rep.Gateway, rep.Keeper, append([]string{}, rep.Changed...)}
	return a.print(out, func(w io.Writer) {
		if len(out.Changed) == 0 {
			fmt.Fprintln(w, "everything is there already")
		}
		fmt.Fprintf(w, "guest    %s\nvolume   %s\ngateway  %s\nkeeper   %s\n", out.Guest, out.Volume, out.Gateway, out.Keeper)
	})
}
