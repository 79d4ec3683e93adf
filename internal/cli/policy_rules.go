package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) load(ctx context.Context, r rules) (*policy.Engine, error) {
	o, err := r.options()
	if err != nil {
		return nil, err
	}
	return policy.Load(ctx, o)
}

func (a *app) policyListCommand() *cobra.Command {
	var r rules
	c := &cobra.Command{
		Use:   "list",
		Short: "List the rules",
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.load(cmd.Context(), r)
			if err != nil {
				return err
			}
			return a.print(e.Rules(), func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				for _, r := range e.Rules() {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.ID, r.Severity, r.Effect, r.Title)
				}
				_ = t.Flush()
			})
		},
	}
	rulesFlags(c, &r)
	a.jsonFlag(c)
	return c
}

func (a *app) policyExplainCommand() *cobra.Command {
	var r rules
	c := &cobra.Command{
		Use:   "explain ID",
		Short: "Explain a rule: what for, what it reads, how to mend",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.load(cmd.Context(), r)
			if err != nil {
				return err
			}
			all := e.Rules()
			i := slices.IndexFunc(all, func(r policy.RuleInfo) bool { return strings.EqualFold(r.ID, args[0]) })
			if i < 0 {
				return driver.Invalid("id", fmt.Sprintf("there is no rule %q", args[0]), "sandboxio policy list; name rules of your own with --policy NAME=DIR")
			}
			return a.print(all[i], func(w io.Writer) { explain(w, all[i]) })
		},
	}
	rulesFlags(c, &r)
	a.jsonFlag(c)
	return c
}

func explain(w io.Writer, r policy.RuleInfo) {
	fmt.Fprintf(w, "%s: %s\n%s, %s", r.ID, r.Title, r.Severity, r.Effect)
	if !r.Waivable {
		fmt.Fprint(w, ", cannot be waived")
	}
	fmt.Fprintf(w, "\n\n%s\n\nFix: %s\n", r.Description, r.Remediation)
	list := func(title string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(w, "\n%s\n  %s\n", title, strings.Join(items, "\n  "))
		}
	}
	list("Judges", []string{joined(r.Kinds), "at " + joined(r.Stages)})
	list("Reads", r.Reads)
	var params, sources []string
	for _, p := range r.Params {
		params = append(params, fmt.Sprintf("%s = %v: %s", p.Name, p.Default, p.Description))
	}
	list("Parameters", params)
	for _, s := range r.Sources {
		sources = append(sources, s.Document+", "+s.Section)
	}
	list("Sources", sources)
	if r.Page != "" {
		fmt.Fprintf(w, "\nSee %s\n", r.Page)
	}
}

func joined[T ~string](in []T) string {
	var out []string
	for _, v := range in {
		out = append(out, string(v))
	}
	return strings.Join(out, ", ")
}

func (a *app) policyDocsCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "docs DIR|NAME=DIR",
		Short: "Write a page for each rule of your own",
		Long:  "Write a page for each rule of your own, and an index.\n\n" + namesHelp,
		Example: `  sandboxio policy docs rules
  sandboxio policy docs acme=rules --output docs/rules`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.load(cmd.Context(), rules{sources: args})
			if err != nil {
				return err
			}
			return a.writeDocs(e, parseSource(args[0]).Name, out)
		},
	}
	c.Flags().StringVar(&out, "output", "docs/policies", "directory for the pages")
	return c
}

func (a *app) writeDocs(e *policy.Engine, set, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var index strings.Builder
	fmt.Fprintf(&index, "# Rules of %s\n\n| rule | severity | effect | title |\n|---|---|---|---|\n", set)
	n := 0
	for _, r := range e.Rules() {
		if r.Set != set {
			continue
		}
		n++
		fmt.Fprintf(&index, "| [%s](%s.md) | %s | %s | %s |\n", r.ID, r.ID, r.Severity, r.Effect, r.Title)
		if err := os.WriteFile(filepath.Join(dir, r.ID+".md"), []byte(page(r)), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "index.md"), []byte(index.String()), 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%d pages in %s\n", n+1, dir)
	return err
}
