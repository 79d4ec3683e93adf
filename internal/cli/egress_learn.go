package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// learning is what egress learn is told.
type learning struct {
	image, mode, allow, format string
	timeout                    time.Duration
	labels                     []string
	args                       []string
}

func (a *app) egressLearnCommand() *cobra.Command {
	var l learning
	c := &cobra.Command{
		Use:   "learn [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program in a sandbox, and print what it tried to reach",
		Long: `Run a program in a sandbox of its own that reaches nothing, or what --allow names
and nothing else, and print what it tried to reach as an allowlist, every line a
comment: the program chose what stands there, and may have been told to. Look up
whose the names are before you take a line over.

PROGRAM has to be in the image. A file of yours is not: hand over what stands in
it, as python3 -c "$(cat program.py)".

What the program writes goes to standard error. In mode proxy what is seen is
what goes to the proxy of the environment (HTTP_PROXY); in mode transparent it is
the names that are asked for, without their ports, and where packets were meant
to go. A program that gives up at the first refusal shows one name a run: put what you
decided on into a file for --allow, and run it again. With --format rules it is
written as --allow and egress lint read it.

Exit codes: 0 the program ran, however it ended, by --timeout too; 1 failed;
2 the policy denies the sandbox.`,
		Example: `  sandboxio egress learn --image python@sha256:… -- pip download requests
  sandboxio egress learn --image python@sha256:… --format rules --allow rules.txt -- pip download requests >>rules.txt
  sandboxio egress learn --image python@sha256:… -- python3 -c "$(cat program.py)"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l.args = args
			return a.learn(cmd.Context(), l)
		},
	}
	a.backendFlag(c)
	a.jsonFlag(c)
	c.Flags().StringVar(&l.image, "image", "", "image to run the program on, by digest or id; empty means the backend's default")
	c.Flags().StringVar(&l.mode, "mode", "proxy", `the mode of the network, "transparent" or "proxy"`)
	c.Flags().StringVar(&l.allow, "allow", "", "file of rules that are allowed already, as egress lint reads it")
	c.Flags().StringVar(&l.format, "format", string(egress.FormatHCL), `how the list is written: "hcl" for Terraform, or "rules" for --allow and egress lint, one a line`)
	c.Flags().DurationVar(&l.timeout, "timeout", driver.DefaultTimeout, "how long the program may run")
	c.Flags().StringArrayVar(&l.labels, "label", nil, "label of the sandbox, as name=value; repeatable")
	c.MarkFlagsMutuallyExclusive("json", "format")
	return c
}

// learned is what egress learn prints as JSON. The program chose the hosts.
type learned struct {
	Schema  string           `json:"schema"`
	Mode    driver.Mode      `json:"mode"`
	Exit    sandbox.Exit     `json:"exit"`
	Rules   []learnedRule    `json:"rules"`    // that would have allowed it
	LeftOut []egress.LeftOut `json:"left_out"` // without a rule to recommend
	Other   int              `json:"other"`    // attempts beyond those told apart
	list    egress.Learned
}

type learnedRule struct {
	Rule     string        `json:"rule"`
	Attempts int           `json:"attempts"`
	Guessed  bool          `json:"port_guessed"` // it was not seen
	Notes    []egress.Note `json:"notes"`        // of the policy
}

func (a *app) learn(ctx context.Context, l learning) error {
	spec, list, err := a.learningSpec(l)
	if err != nil {
		return err
	}
	format := egress.Format(l.format)
	if format != egress.FormatHCL && format != egress.FormatRules {
		return driver.Invalid("format", fmt.Sprintf("%q is no format", l.format), "use hcl or rules")
	}
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	rt, err := e.Runtime(ctx, "", sandbox.Options{Owner: "egress-learn"})
	if err != nil {
		return err
	}
	exit, denied, err := a.attempt(ctx, rt, spec, sandbox.Cmd{Args: l.args, Timeout: l.timeout})
	if denied == nil {
		return list.placed(inFlags(err))
	}
	r, jerr := learnedOf(ctx, e.Policy(), spec.Network.Mode, exit, *denied)
	if jerr != nil {
		return driver.Join(err, jerr)
	}
	perr := a.print(r, func(w io.Writer) { r.text(w, l.timeout, format) })
	if perr == nil && exit.TimedOut {
		fmt.Fprintf(a.Err, "warning: the program was ended after %s, and may have more to try\n  fix: raise --timeout\n", l.timeout)
	}
	return driver.Join(err, perr)
}

// learningSpec is the sandbox to learn in, and the list of what is allowed.
func (a *app) learningSpec(l learning) (spec sandbox.Spec, list allowlist, err error) {
	spec = sandbox.Spec{Image: l.image, Network: sandbox.Network{Learn: true}, Lifetime: max(l.timeout+time.Minute, time.Minute).Round(time.Second)}
	if spec.Network.Mode, err = driver.ParseMode(l.mode); err != nil {
		return spec, list, err
	}
	if spec.Labels, err = parseLabels(l.labels); err != nil {
		return spec, list, err
	}
	if l.allow != "" {
		if list, err = a.readAllowlist(l.allow); err != nil {
			return spec, list, err
		}
		if err := list.refusal(); err != nil {
			return spec, list, err
		}
		spec.Network.Egress = list.rules
	}
	if l.timeout <= 0 {
		return spec, list, driver.Invalid("timeout", l.timeout.String()+" is not positive", "set timeout, as 300s, or leave it out")
	}
	return spec, list, nil
}

// inFlags puts a fix that names a field of the library into words of the
// command line.
func inFlags(err error) error {
	problems := driver.Problems(err)
	if !slices.ContainsFunc(problems, func(p *driver.Error) bool { return p.Field == "image" }) {
		return err
	}
	all := make([]error, 0, len(problems))
	for _, p := range problems {
		c := *p
		if c.Field == "image" {
			c.Hint = "name one with --image, as repository@sha256:…, or by the id that docker image inspect --format '{{.Id}}' gives"
		}
		all = append(all, &c)
	}
	return driver.Join(all...)
}

// attempt runs the program, and tells what it was refused; nil if that is not
// known. That its time was up is no error.
func (a *app) attempt(ctx context.Context, rt *sandbox.Runtime, spec sandbox.Spec, cmd sandbox.Cmd) (exit sandbox.Exit, denied *sandbox.Denials, err error) {
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return exit, nil, err
	}
	defer func() { err = driver.Join(err, sb.Close()) }()
	p, err := sb.Start(ctx, cmd)
	if err != nil {
		return exit, nil, err
	}
	for c, err := range p.Output() {
		if err != nil {
			break // Wait gives it too
		}
		if _, err := a.Err.Write(c.Data); err != nil {
			return exit, nil, err
		}
	}
	exit, err = p.Wait()
	if c := driver.Problems(err); len(c) == 1 && c[0].Code == driver.CodeTimeout && ctx.Err() == nil {
		exit.TimedOut, err = true, nil
	}
	if err != nil {
		return exit, nil, err
	}
	d, err := sb.Denied(ctx)
	if err != nil {
		return exit, nil, err
	}
	return exit, &d, nil
}

// learnedOf makes a list of what was refused, with what the policy says of it.
func learnedOf(ctx context.Context, judge *policy.Engine, mode driver.Mode, exit sandbox.Exit, denied sandbox.Denials) (learned, error) {
	all := make([]egress.Denial, 0, len(denied.Told))
	for _, d := range denied.Told {
		all = append(all, egress.DenialOf(d))
	}
	l, err := egress.Learn(all, denied.Other, func(rules []driver.Rule) ([]egress.Note, error) {
		return notesOf(ctx, judge, driver.Network{Egress: rules, Mode: mode})
	})
	if err != nil {
		return learned{}, err
	}
	r := learned{Schema: "sandboxio.egress.learn/v1", Mode: mode, Exit: exit, Rules: []learnedRule{}, LeftOut: []egress.LeftOut{}, Other: l.Other, list: l}
	for _, rule := range l.Rules {
		notes := rule.Notes
		if notes == nil {
			notes = []egress.Note{}
		}
		r.Rules = append(r.Rules, learnedRule{rule.String(), rule.Attempts, rule.Guessed, notes})
	}
	for _, d := range l.LeftOut {
		d.Host = strings.Map(ascii, d.Host)
		r.LeftOut = append(r.LeftOut, d)
	}
	return r, nil
}

// notesOf is what a policy says of the hosts of a network's rules. What no
// waiver excuses, nobody may allow.
func notesOf(ctx context.Context, judge *policy.Engine, n driver.Network) ([]egress.Note, error) {
	v, err := judge.Judge(ctx, policy.Input{Kind: policy.KindNetworkPolicy, Stage: policy.StagePlan, Resource: policy.Resource{Network: policy.NetworkOf(n)}})
	if err != nil {
		return nil, err
	}
	firm := map[string]bool{}
	for _, r := range judge.Rules() {
		firm[r.ID] = !r.Waivable
	}
	var notes []egress.Note
	for _, f := range v.Findings {
		if f.Effect == sandbox.Failed {
			return nil, &driver.Error{Code: driver.CodeInternal, Op: "learn", Err: errors.New("what was attempted could not be judged: " + f.Message)}
		}
		for i := range n.Egress {
			if f.Path == fmt.Sprintf("network.egress[%d].host", i) && f.Effect != sandbox.Waived {
				notes = append(notes, egress.Note{Rule: i, ID: f.Rule, Text: f.Message, Bar: firm[f.Rule]})
			}
		}
	}
	return notes, nil
}

func (r learned) text(w io.Writer, timeout time.Duration, format egress.Format) {
	switch {
	case r.Exit.TimedOut:
		fmt.Fprintf(w, "# The program was ended after %s, by --timeout: what it would have tried later is not here.\n", timeout)
	case r.Exit.Signal != "":
		fmt.Fprintf(w, "# The program was ended by %s.\n", strings.Map(ascii, r.Exit.Signal))
	default:
		fmt.Fprintf(w, "# The program ended with %d.\n", r.Exit.Code)
	}
	_, _ = io.WriteString(w, r.list.Text(r.Mode, format))
}
