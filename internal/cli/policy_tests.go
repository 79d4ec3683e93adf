package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

func (a *app) policyTestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test DIR|NAME=DIR",
		Short: "Run the tests of rules of your own",
		Long: `Run the tests of rules of your own: each rule test_… in a file *_test.rego passes
when it is true, and when what the rules answer in it is what rules may answer.
What they answered is told of a test that fails. The rules are compiled first as the provider and the runtime
would, and no tests at all is a failure.

` + namesHelp,
		Example: `  sandboxio policy test rules
  sandboxio policy test acme=rules --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.policyTest(cmd.Context(), args[0]) },
	}
	a.jsonFlag(c)
	return c
}

func (a *app) policyTest(ctx context.Context, source string) error {
	results, err := policy.Test(ctx, parseSource(source))
	if err != nil {
		return err
	}
	failed := 0
	for _, t := range results {
		if !t.Pass {
			failed++
		}
	}
	if err := a.print(results, func(w io.Writer) {
		for _, t := range results {
			switch {
			case t.Pass:
				fmt.Fprintf(w, "ok    %s\n", t.Name)
			case t.Err != "":
				fmt.Fprintf(w, "FAIL  %s (%s:%d): %s\n", t.Name, t.File, t.Line, t.Err)
			default:
				fmt.Fprintf(w, "FAIL  %s (%s:%d)\n", t.Name, t.File, t.Line)
			}
			if !t.Pass {
				for _, answer := range t.Answers {
					fmt.Fprintf(w, "      answered: %s\n", answer)
				}
				if len(t.Answers) == 0 {
					fmt.Fprintln(w, "      no rule answered anything")
				}
			}
		}
	}); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed", failed, len(results))
	}
	return nil
}
