package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// linted is a finding with its place, for people and for programs.
type linted struct {
	Place  string           `json:"place"`
	Index  int              `json:"input_index"` // of the entry in the input, the malformed counted; -1 for the list as a whole
	Rule   *string          `json:"rule"`        // that of the report's rules which the entry is part of; null for a malformed one and the list as a whole
	Kind   egress.Kind      `json:"kind"`
	Policy string           `json:"policy"` // the rule of the policy that says it, as "SBX-NET-004"; "" when none does
	Effect sandbox.Decision `json:"effect"` // "deny", "warn" or "waived"
	Field  string           `json:"field"`
	Text   string           `json:"text"`
	Fix    string           `json:"fix"`
}

// lintReport is what lint prints as JSON.
type lintReport struct {
	Schema     string              `json:"schema"`
	Verdict    string              `json:"verdict"` // "ok", "warn" or "deny"
	Mode       driver.Mode         `json:"mode"`
	Entries    int                 `json:"entries"`    // of the input, the malformed counted
	Rules      []string            `json:"rules"`      // canonical, without the malformed
	Mechanisms []*driver.Mechanism `json:"mechanisms"` // by rule; null where it cannot be enforced
	Findings   []linted            `json:"findings"`   // by place in the input
}

func (a *app) egressLintCommand() *cobra.Command {
	var mode string
	var warn bool
	c := &cobra.Command{
		Use:   "lint FILE",
		Short: "Find what is wrong with an allowlist, and what the policy denies of it",
		Long: `Find rules that are malformed, that cannot be enforced, that say what others say
already, that can never match, that open protected or very wide ranges; and what
the policy denies of them, as it does in a plan with a sandboxio_network_policy:
by the built-in rules, and by the floor where there is one (sandboxio policy
list, sandboxio policy explain ID).
` + allowlistHelp + `

What a list does not have is not judged: ports that are exposed (SBX-NET-012),
but of a JSON object with "expose"; what surrounds a container of others
(SBX-NET-001); image, isolation, caps and secrets of a template; rules,
parameters and waivers in a provider's policy. sandboxio policy check judges
all of a plan.

Exit codes: 0 nothing denied, 1 failed, 2 something is denied, by lint itself or
by the policy, 4 with --fail-on-warn nothing is denied and something is warned of.`,
		Example: `  sandboxio egress lint rules.txt
  sandboxio egress lint --mode proxy --fail-on-warn rules.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.readAllowlist(args[0])
			if err != nil {
				return err
			}
			m, err := l.modeOf(mode)
			if err != nil {
				return err
			}
			r, err := l.lint(cmd.Context(), m)
			if err != nil {
				return err
			}
			if err := a.print(r, r.text); err != nil {
				return err
			}
			switch {
			case r.Verdict == "deny":
				return exitDenied
			case warn && r.Verdict == "warn":
				return exitWarned
			}
			return nil
		},
	}
	modeFlag(c, &mode)
	c.Flags().BoolVar(&warn, "fail-on-warn", false, "exit with 4 when there are warnings")
	a.jsonFlag(c)
	return c
}

func (l allowlist) lint(ctx context.Context, mode driver.Mode) (lintReport, error) {
	r := lintReport{
		Schema: "sandboxio.egress.lint/v1", Verdict: "ok", Mode: mode, Entries: l.all,
		Rules: []string{}, Mechanisms: []*driver.Mechanism{}, Findings: append([]linted{}, l.malformed...),
	}
	canonical, err := driver.Canonical(l.rules)
	if err != nil {
		return r, err
	}
	texts := map[string]string{}
	for _, c := range canonical {
		text := c.String()
		texts[c.Target()] = text
		r.Rules = append(r.Rules, text)
		var m *driver.Mechanism
		if by, err := egress.Mechanisms(driver.Network{Egress: []driver.Rule{c}, Mode: mode}); err == nil {
			m = &by[0]
		}
		r.Mechanisms = append(r.Mechanisms, m)
	}
	engine, err := policy.Load(ctx, policy.Options{})
	if err != nil {
		return r, err
	}
	judged, err := l.judge(ctx, engine, mode)
	if err != nil {
		return r, err
	}
	own, err := l.own(ctx, engine, mode)
	if err != nil {
		return r, err
	}
	for _, f := range together(own, judged) {
		if f.Index >= 0 { // so far among those that can be read
			one, err := driver.Canonical(l.rules[f.Index : f.Index+1])
			if err != nil {
				return r, err
			}
			f.Rule = new(texts[one[0].Target()])
			f.Place, f.Index = l.places[f.Index], l.entries[f.Index]
		}
		r.Findings = append(r.Findings, f)
	}
	slices.SortStableFunc(r.Findings, func(a, b linted) int { return a.Index - b.Index })
	switch {
	case r.count(sandbox.Deny) > 0:
		r.Verdict = "deny"
	case r.count(sandbox.Warn) > 0:
		r.Verdict = "warn"
	}
	return r, nil
}

// own is what lint says by itself. Where it says how to be rid of a port it
// knows what the policy says of that port.
func (l allowlist) own(ctx context.Context, engine *policy.Engine, mode driver.Mode) ([]egress.Finding, error) {
	own := egress.Lint(l.rules, mode)
	var ports []uint16
	for _, f := range own {
		if f.Mute != 0 && !slices.Contains(ports, f.Mute) {
			ports = append(ports, f.Mute)
		}
	}
	denied, err := deniedPorts(ctx, engine, mode, ports)
	if err != nil {
		return nil, err
	}
	for i, f := range own {
		if f.Mute == 0 {
			continue
		}
		one, err := driver.Canonical(l.rules[f.Rule : f.Rule+1])
		if err != nil {
			return nil, err
		}
		own[i].Fix = muteFix(one[0], f.Mute, denied)
	}
	return own, nil
}

func (r lintReport) count(effect sandbox.Decision) int {
	n := 0
	for _, f := range r.Findings {
		if f.Effect == effect {
			n++
		}
	}
	return n
}

func (r lintReport) text(w io.Writer) {
	by := 0
	for _, f := range r.Findings {
		what := string(f.Kind)
		if f.Policy != "" {
			what += " " + f.Policy
		}
		if f.Policy != "" && f.Effect == sandbox.Deny {
			by++
		}
		fmt.Fprintf(w, "%s: %s %s: %s\n  fix: %s\n", f.Place, f.Effect, what, f.Text, f.Fix)
	}
	fmt.Fprintf(w, "%s: %s of %s; findings: %d deny (%d by the policy), %d warn", r.Verdict, count(uint64(len(r.Rules)), "rule"), count(uint64(r.Entries), "entry"),
		r.count(sandbox.Deny), by, r.count(sandbox.Warn))
	if n := r.count(sandbox.Waived); n > 0 {
		fmt.Fprintf(w, ", %d waived", n)
	}
	fmt.Fprintln(w)
	if r.Entries == 0 {
		fmt.Fprintln(w, "  there is no rule: a sandbox with this list reaches nothing, name resolution included")
	}
}
