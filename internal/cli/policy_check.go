package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// exit is an exit code whose reason was told already.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Exit codes of a review, worst first.
const (
	exitDenied  exit = 2
	exitUnknown exit = 3
	exitWarned  exit = 4
)

type checkOptions struct {
	rules
	formats  []string
	output   string
	source   string
	baseline string
	unknown  string
	warn     bool
}

func (a *app) policyCheckCommand() *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check PLAN|DIR",
		Short: "Judge a plan file, a plan as JSON, or a directory of .tf files",
		Long: `Judge what Terraform or OpenTofu would make, by the same rules as the provider
and the runtime. PLAN is a plan file, which terraform has to be able to show, or
its JSON; in DIR only literals are known, and everything else is not decided.

Exit codes: 0 nothing denied, 1 failed, 2 denied, 3 with --fail-on-unknown
something is not decided or is missing, 4 with --fail-on-warn something is warned of. A plan
without anything to judge fails.

--policy NAME=DIR asks rules of your own too.
` + namesHelp,
		Example: `  terraform plan -out=tf.plan && sandboxio policy check tf.plan
  sandboxio policy check plan.json --source infra --format sarif=sandboxio.sarif --format github
  sandboxio policy check . --fail-on-unknown=critical
  sandboxio policy check tf.plan --policy acme=rules --param 'acme_teams=["data"]'
  sandboxio policy check tf.plan --policy acme.tar.gz --policy-key policy.pub --policy-min-revision 7`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), args[0], o) },
	}
	judgeFlags(c, &o.rules)
	c.Flags().StringArrayVar(&o.formats, "format", nil, "how to tell, as FORMAT or FORMAT=FILE; repeatable: "+strings.Join(review.Formats(), ", ")+" (default text)")
	c.Flags().StringVar(&o.output, "output", "", "write to this file, and one line to standard output")
	c.Flags().StringVar(&o.source, "source", "", "directory of the configuration, for lines of a plan as JSON and names of files in annotations")
	c.Flags().StringVar(&o.baseline, "baseline", "", "a report of --format json: what is in it is told and does not count")
	c.Flags().StringVar(&o.unknown, "fail-on-unknown", "", "exit with 3 when rules of this severity or worse are not decided: critical, high, medium, low, or all")
	c.Flags().Lookup("fail-on-unknown").NoOptDefVal = "all"
	c.Flags().BoolVar(&o.warn, "fail-on-warn", false, "exit with 4 when there are warnings")
	return c
}

// printing is one report to write.
type printing struct {
	format string
	file   string // "" is standard output
	write  review.Writer
}

func (o checkOptions) printings() ([]printing, error) {
	var out []printing
	stdout := 0
	for _, f := range o.formats {
		name, file, _ := strings.Cut(f, "=")
		if file == "" && o.output != "" && len(o.formats) == 1 {
			file = o.output
		}
		w, err := review.Format(name)
		if err != nil {
			return nil, err
		}
		if file == "-" || file == "/dev/stdout" {
			file = ""
		}
		if file == "" {
			stdout++
		}
		out = append(out, printing{name, file, w})
	}
	switch {
	case len(out) == 0:
		w, err := review.Format("text")
		return []printing{{"text", o.output, w}}, err
	case o.output != "" && len(out) > 1:
		return nil, driver.Invalid("output", "there are several formats", "write --format FORMAT=FILE for each")
	case stdout > 1:
		return nil, driver.Invalid("format", "two formats would be mixed on standard output", "write --format FORMAT=FILE for all but one")
	}
	return out, nil
}

func (a *app) check(ctx context.Context, name string, o checkOptions) error {
	out, err := o.printings()
	if err != nil {
		return err
	}
	if o.unknown != "" && !slices.Contains([]string{"critical", "high", "medium", "low", "all"}, o.unknown) {
		return driver.Invalid("fail-on-unknown", fmt.Sprintf("%q is no severity", o.unknown), "use critical, high, medium, low or all")
	}
	settings, err := o.options()
	if err != nil {
		return err
	}
	baseline, err := readBaseline(o.baseline)
	if err != nil {
		return err
	}
	engine, err := policy.Load(ctx, settings)
	if err != nil {
		return err
	}
	progress, done := a.progress()
	defer done()
	p, err := plan.Open(ctx, name, plan.Options{Source: o.source, Backend: promises(), Progress: progress})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	text := slices.ContainsFunc(out, func(p printing) bool { return p.format == "text" })
	r, err := review.Run(ctx, p, engine, review.Options{Baseline: baseline, Excerpts: text})
	done()
	if err != nil {
		return err
	}
	for _, p := range out {
		if err := a.write(p, r); err != nil {
			return err
		}
	}
	return verdict(r, o)
}

func (a *app) write(p printing, r *review.Report) error {
	if p.file == "" {
		if bold, _ := a.style(a.Out); p.format == "text" && bold != "" {
			return r.Text(a.Out, review.Colours)
		}
		return p.write(a.Out, r, a.version)
	}
	if err := writeFile(p.file, func(w io.Writer) error { return p.write(w, r, a.version) }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%s (%s in %s)\n", r.Summary(), p.format, p.file)
	return err
}

// verdict is the exit code.
func verdict(r *review.Report, o checkOptions) error {
	if r.Count(sandbox.Failed, sandbox.Deny) > 0 {
		return exitDenied
	}
	if o.unknown != "" {
		if r.Seen.Partial {
			return exitUnknown // what is missing may be anything
		}
		for _, f := range r.Findings {
			if f.Counts() && f.Effect == sandbox.Unknown && (o.unknown == "all" || review.AtLeast(f.Severity, o.unknown)) {
				return exitUnknown
			}
		}
	}
	if o.warn && r.Count(sandbox.Warn) > 0 {
		return exitWarned
	}
	return nil
}

func readBaseline(name string) (map[string]bool, error) {
	if name == "" {
		return nil, nil
	}
	f, err := openFile("baseline", name, "make one with --format json --output FILE")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known, err := review.ReadBaseline(f)
	if err != nil {
		return nil, driver.Invalid("baseline", fmt.Sprintf("%s: %v", name, err), "make one with --format json --output "+name)
	}
	return known, nil
}

// promises opens each backend once.
func promises() func(ctx context.Context, name, image string) (driver.Backend, error) {
	type key struct{ name, image string }
	var mu sync.Mutex
	open := map[key]driver.Backend{}
	return func(ctx context.Context, name, image string) (driver.Backend, error) {
		mu.Lock()
		defer mu.Unlock()
		k := key{name, image}
		if b, ok := open[k]; ok {
			return b, nil
		}
		b, err := estate.Promise(ctx, name, image)
		if err == nil {
			open[k] = b
		}
		return b, err
	}
}

// large is where a plan takes long enough to be told how far it is.
const large = 4 << 20

// progress tells how far the reading is, on a terminal, and gives the function
// that takes the line away.
func (a *app) progress() (func(done, total int64), func()) {
	if !isTerminal(a.Err) {
		return nil, func() {}
	}
	last := int64(-1)
	return func(done, total int64) {
			if percent := done * 100 / cmp.Or(total, 1); total > large && percent != last {
				last = percent
				_, _ = fmt.Fprintf(a.Err, "\rchecking %d %%", percent)
			}
		}, func() {
			if last >= 0 {
				_, _ = io.WriteString(a.Err, "\r              \r")
				last = -1
			}
		}
}
