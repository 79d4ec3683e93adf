package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// takeArguments makes every command below c take the arguments that its usage
// line names, no more and no less, and refuse others with that line as the fix.
// A command that only has others below it refuses what is none of them.
func takeArguments(c *cobra.Command) {
	for _, sub := range c.Commands() {
		takeArguments(sub)
		sub.Args = argumentsOf
		if !sub.Runnable() {
			sub.DisableFlagsInUseLine = true
			sub.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// argumentsOf compares arguments with the usage line of their command: FILE
// must be there, [FILE] may, and what ends with an ellipsis may be repeated.
func argumentsOf(c *cobra.Command, args []string) error {
	var required []string
	most := 0
	for _, word := range strings.Fields(c.Use)[1:] {
		switch {
		case word == "[flags]" || word == "--":
			continue
		case strings.Contains(word, "..."):
			most = len(args)
		case !strings.HasPrefix(word, "["):
			required = append(required, word)
		}
		most++
	}
	usage := strings.TrimSpace(c.Parent().CommandPath() + " " + c.Use)
	switch {
	case len(args) < len(required):
		return driver.Invalid(strings.Join(required[len(args):], " "), "it is missing", "write "+usage)
	case len(args) <= most:
		return nil
	case c.HasAvailableSubCommands():
		return driver.Invalid("command", fmt.Sprintf("%+q is no command of %s", args[0], c.CommandPath()), "use "+strings.Join(below(c), ", "))
	case most == 0:
		return driver.Invalid("arguments", fmt.Sprintf("%+q is one too many: there are none", args[0]), "write "+usage)
	}
	return driver.Invalid("arguments", fmt.Sprintf("%+q is one too many", args[most]), "write "+usage)
}

// below are the names of the commands below c that help lists.
func below(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	slices.Sort(names)
	return names
}

// flagError gives an error of the flags the fix.
func flagError(c *cobra.Command, err error) error {
	return driver.Invalid("flags", err.Error(), c.CommandPath()+" --help lists them")
}
