package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/codes"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Tell what an error's code means and what to do",
		Long:  "Tell what an error's code means, where it comes from and what to do. Without a\ncode, list them all.",
		Example: `  sandboxio explain
  sandboxio explain leaked`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var all []string
			for _, code := range driver.Codes() {
				all = append(all, string(code))
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.explainAll()
			}
			e, ok := codes.Of(driver.Code(args[0]))
			if !ok {
				return driver.Invalid("code", fmt.Sprintf("%q is no code", args[0]), "sandboxio explain lists them")
			}
			bold, plain := a.style(a.Out)
			return a.print(e, func(w io.Writer) { e.Print(w, bold, plain) })
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) explainAll() error {
	all := codes.All()
	return a.print(all, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, e := range all {
			fmt.Fprintf(t, "%s\t%s\n", e.Code, e.Title)
		}
		_ = t.Flush()
	})
}
