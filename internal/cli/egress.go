package cli

import (
	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const allowlistHelp = `FILE, or - for standard input, has one rule a line, as example.com,
*.example.com:443,8443, 203.0.113.0/24:8022 or [2001:db8::/32]:443, and after a #
the reason; or it is JSON: a list of rules, or an object with them in "egress", as
sandboxio_network_policy has them.`

func (a *app) egressCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "egress",
		Short: "Check allowlists, explain what they allow, learn what a program needs, and prove what is closed",
	}
	c.AddCommand(a.egressLintCommand(), a.egressExplainCommand(), a.egressLearnCommand(), a.egressProveCommand())
	return c
}

// modeFlag adds --mode, which goes before the mode that a list has of its own.
func modeFlag(c *cobra.Command, mode *string) {
	c.Flags().StringVar(mode, "mode", "", `the mode of the network, "transparent" or "proxy" (default the "mode" of a JSON object, else "transparent")`)
}

// modeOf is the mode that a list is judged for.
func (l allowlist) modeOf(flag string) (driver.Mode, error) {
	if flag == "" {
		return l.mode, nil
	}
	return driver.ParseMode(flag)
}
