package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/demo"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) demoCommand() *cobra.Command {
	var o demo.Options
	var memory bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole idea: plan, deny, apply, run, destroy, nothing left",
		Long: `Show the whole idea on a real engine, and stop at the first promise that does not
hold. Needs Terraform 1.11 or newer and an image with sh and python3; make demo
in the repository brings both the image and the engine.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.CLI, err = os.Executable(); err != nil {
				return err
			}
			o.Backend, o.Out = a.backend, a.Out
			if memory {
				o.Backend = "memory://demo"
			} else if o.Image == "" {
				return driver.Invalid("image", "no image was named", "run make demo, or pass --image with the id of an image that has sh and python3")
			}
			o.Bold, o.Plain = a.style(a.Out)
			return demo.Run(cmd.Context(), o)
		},
	}
	a.backendFlag(c)
	c.Flags().StringVar(&o.Image, "image", "", "image for the sandboxes, by id or digest, with sh and python3")
	c.Flags().BoolVar(&memory, "memory", false, "show the Terraform half only, on the embedded fake")
	c.AddCommand(a.creatorCommand())
	return c
}

// creatorCommand is the child that the demo kills.
func (a *app) creatorCommand() *cobra.Command {
	var manifest string
	c := &cobra.Command{
		Use:    "creator",
		Short:  "Create a sandbox and wait to be killed (what the demo runs)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Creator(cmd.Context(), a.Out, a.backend, manifest)
		},
	}
	a.backendFlag(c)
	c.Flags().StringVar(&manifest, "manifest", "", "file with the template's manifest")
	return c
}
