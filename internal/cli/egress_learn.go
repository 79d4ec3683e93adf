package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// learning is what egress learn is told.
type learning struct {
	image, mode, allow string
	timeout            time.Duration
	labels             []string
	args               []string
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

What the program writes goes to standard error. In mode proxy what is seen is
what goes to the proxy of the environment (HTTP_PROXY); in mode transparent it is
the names that are asked for, without their ports, and where packets were meant
to go. A program that gives up at the first refusal shows one name a run: put what you
decided on into a file for --allow, and run it again.

Exit codes: 0 the program ran, however it ended; 1 failed; 2 the policy denies
the sandbox.`,
		Example: `  sandboxio egress learn --image python@sha256:… -- pip download requests
  sandboxio egress learn --image python@sha256:… --allow rules.txt -- pip download requests >>rules.txt`,
		Args: cobra.MinimumNArgs(1),
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
	c.Flags().DurationVar(&l.timeout, "timeout", driver.DefaultTimeout, "how long the program may run")
	c.Flags().StringArrayVar(&l.labels, "label", nil, "label of the sandbox, as name=value; repeatable")
	return c
}

// learned is what egress learn prints as JSON. The program chose the hosts.
type learned struct {
	Schema    string          `json:"schema"`
	Mode      driver.Mode     `json:"mode"`
	Exit      *sandbox.Exit   `json:"exit"`
	Rules     []learnedRule   `json:"rules"`    // that would have allowed it
	LeftOut   []egress.Denial `json:"left_out"` // without a rule to recommend
	Other     int             `json:"other"`    // attempts beyond those told apart
	allowlist string
}

type learnedRule struct {
	Rule     string `json:"rule"`
	Attempts int    `json:"attempts"`
}

func (a *app) learn(ctx context.Context, l learning) error {
	spec := sandbox.Spec{Image: l.image, Network: sandbox.Network{Learn: true}, Lifetime: max(l.timeout+time.Minute, time.Minute).Round(time.Second)}
	var err error
	if spec.Network.Mode, err = driver.ParseMode(l.mode); err != nil {
		return err
	}
	if spec.Labels, err = parseLabels(l.labels); err != nil {
		return err
	}
	if l.allow != "" {
		list, err := a.readAllowlist(l.allow)
		if err != nil {
			return err
		}
		if len(list.malformed) > 0 {
			f := list.malformed[0]
			return driver.Invalid(f.Place, f.Text, f.Fix)
		}
		spec.Network.Egress = list.rules
	}
	if l.timeout <= 0 {
		return driver.Invalid("timeout", l.timeout.String()+" is not positive", "set timeout, as 300s, or leave it out")
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
	r, err := a.attempt(ctx, rt, spec, sandbox.Cmd{Args: l.args, Timeout: l.timeout})
	if err != nil {
		return err
	}
	return a.print(r, func(w io.Writer) { _, _ = io.WriteString(w, r.allowlist) })
}

// attempt runs the program, and makes a list of what it was refused.
func (a *app) attempt(ctx context.Context, rt *sandbox.Runtime, spec sandbox.Spec, cmd sandbox.Cmd) (r learned, err error) {
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return r, err
	}
	defer func() { err = driver.Join(err, sb.Close()) }()
	p, err := sb.Start(ctx, cmd)
	if err != nil {
		return r, err
	}
	for c, err := range p.Output() {
		if err != nil {
			return r, err
		}
		if _, err := a.Err.Write(c.Data); err != nil {
			return r, err
		}
	}
	exit, err := p.Wait()
	if err != nil {
		return r, err
	}
	denied, err := sb.Denied(ctx)
	if err != nil {
		return r, err
	}
	all := make([]egress.Denial, 0, len(denied.Told))
	for _, d := range denied.Told {
		all = append(all, egress.DenialOf(d))
	}
	l := egress.Learn(all)
	for i := range l.LeftOut {
		l.LeftOut[i].Host = strings.Map(ascii, l.LeftOut[i].Host)
	}
	r = learned{Schema: "sandboxio.egress.learn/v1", Mode: spec.Network.Mode, Exit: &exit, Rules: []learnedRule{}, LeftOut: l.LeftOut, Other: denied.Other, allowlist: l.HCL(spec.Network.Mode)}
	if r.LeftOut == nil {
		r.LeftOut = []egress.Denial{}
	}
	for i, rule := range l.Rules {
		r.Rules = append(r.Rules, learnedRule{rule.String(), l.Counts[i]})
	}
	if denied.Other > 0 {
		r.allowlist += fmt.Sprintf("# And %d attempts more, which were not told apart.\n", denied.Other)
	}
	return r, nil
}

// ascii keeps a name from acting on a terminal.
func ascii(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
