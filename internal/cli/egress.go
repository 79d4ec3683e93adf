package cli

import (
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const allowlistHelp = `FILE, or - for standard input, has one rule a line, as example.com,
*.example.com:443, 203.0.113.0/24:22 or [2001:db8::/32]:443, and after a # the
reason; or it is JSON: a list of rules, or an object with them in "egress", as
sandboxio_network_policy has them.`

func (a *app) egressCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "egress",
		Short: "Check allowlists, explain what they allow, learn what a program needs, and prove what is closed",
	}
	c.AddCommand(a.egressLintCommand(), a.egressExplainCommand(), a.egressLearnCommand(), a.egressProveCommand())
	return c
}

// linted is a finding with its place, for people and for programs.
type linted struct {
	Place string `json:"place"`
	egress.Finding
	entry int // in the file, from the top
}

// lintReport is what lint prints as JSON.
type lintReport struct {
	Schema     string              `json:"schema"`
	Rules      []string            `json:"rules"`      // canonical, without the malformed
	Mechanisms []*driver.Mechanism `json:"mechanisms"` // by rule; null where it cannot be enforced
	Findings   []linted            `json:"findings"`
}

func (a *app) egressLintCommand() *cobra.Command {
	var mode string
	var warn bool
	c := &cobra.Command{
		Use:   "lint FILE",
		Short: "Find what is wrong with an allowlist",
		Long: `Find rules that are malformed, that cannot be enforced, that say what others say
already, that can never match, that open protected or very wide ranges.
` + allowlistHelp + `

Exit codes: 0 nothing denied, 1 failed, 2 denied, 4 with --fail-on-warn something
is warned of.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := driver.ParseMode(mode)
			if err != nil {
				return err
			}
			l, err := a.readAllowlist(args[0])
			if err != nil {
				return err
			}
			r, denied := l.lint(m)
			if err := a.print(r, func(w io.Writer) { r.text(w, denied) }); err != nil {
				return err
			}
			switch {
			case denied > 0:
				return exitDenied
			case warn && len(r.Findings) > 0:
				return exitWarned
			}
			return nil
		},
	}
	c.Flags().StringVar(&mode, "mode", "transparent", `the mode of the network, "transparent" or "proxy"`)
	c.Flags().BoolVar(&warn, "fail-on-warn", false, "exit with 4 when there are warnings")
	a.jsonFlag(c)
	return c
}

// lint gives the report and how many findings deny.
func (l allowlist) lint(mode driver.Mode) (lintReport, int) {
	r := lintReport{Schema: "sandboxio.egress.lint/v1", Rules: []string{}, Mechanisms: []*driver.Mechanism{}, Findings: l.malformed}
	for _, f := range egress.Lint(l.rules, mode) {
		r.Findings = append(r.Findings, linted{l.places[f.Rule], f, l.entries[f.Rule]})
	}
	if r.Findings == nil {
		r.Findings = []linted{}
	}
	slices.SortStableFunc(r.Findings, func(a, b linted) int { return a.entry - b.entry })
	canonical, err := driver.Canonical(l.rules)
	if err == nil {
		for _, c := range canonical {
			r.Rules = append(r.Rules, c.String())
			var m *driver.Mechanism
			if by, err := egress.Mechanisms(driver.Network{Egress: []driver.Rule{c}, Mode: mode}); err == nil {
				m = &by[0]
			}
			r.Mechanisms = append(r.Mechanisms, m)
		}
	}
	denied := 0
	for _, f := range r.Findings {
		if f.Deny {
			denied++
		}
	}
	return r, denied
}

func (r lintReport) text(w io.Writer, denied int) {
	for _, f := range r.Findings {
		effect := "warn"
		if f.Deny {
			effect = "deny"
		}
		fmt.Fprintf(w, "%s: %s %s: %s\n  fix: %s\n", f.Place, effect, f.Kind, f.Text, f.Fix)
	}
	verdict := "ok"
	if denied > 0 {
		verdict = "deny"
	} else if len(r.Findings) > 0 {
		verdict = "warn"
	}
	fmt.Fprintf(w, "%s: %d rules, %d denied, %d warned of\n", verdict, len(r.Rules), denied, len(r.Findings)-denied)
}

func (a *app) egressExplainCommand() *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "explain FILE HOST:PORT",
		Short: "Say why an allowlist allows a request, or refuses it",
		Long: `Say whether an allowlist allows a TCP connection, by which rule, and if not, why
and which rule comes nearest.
` + allowlistHelp + `

Exit codes: 0 allowed, 1 failed, 2 refused.`,
		Example: `  sandboxio egress explain rules.txt api.example.com:443
  sandboxio egress explain rules.txt api.example.com:443 --at 10.0.0.1
  echo '*.example.com' | sandboxio egress explain - '[2001:db8::1]:443'`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := a.explainRequest(args[0], args[1], at)
			if err != nil {
				return err
			}
			if err := a.print(e, func(w io.Writer) { explanation(w, e) }); err != nil {
				return err
			}
			if !e.Allowed {
				return exitDenied
			}
			return nil
		},
	}
	c.Flags().StringVar(&at, "at", "", "the address that the host resolves to")
	a.jsonFlag(c)
	return c
}

func (a *app) explainRequest(file, word, at string) (egress.Explanation, error) {
	var none egress.Explanation
	ascii, err := wish.Word("request", word)
	if err != nil {
		return none, err
	}
	r, err := egress.ParseRequest("request", ascii)
	if err != nil {
		return none, err
	}
	if at != "" {
		if r.Host == "" {
			return none, driver.Invalid("at", "the request is an address already", "leave --at out")
		}
		if r.Addr, err = netip.ParseAddr(at); err != nil {
			return none, driver.Invalid("at", fmt.Sprintf("%+q is no address", at), "give what the host resolves to, as 203.0.113.9")
		}
	}
	l, err := a.readAllowlist(file)
	if err != nil {
		return none, err
	}
	if len(l.malformed) > 0 {
		f := l.malformed[0]
		return none, driver.Invalid(f.Place, f.Text, f.Fix)
	}
	p, err := egress.Compile(l.rules, egress.Options{})
	if err != nil {
		return none, err
	}
	return p.Explain(r), nil
}

func explanation(w io.Writer, e egress.Explanation) {
	verdict := "refused"
	if e.Allowed {
		verdict = "allowed"
	}
	fmt.Fprintf(w, "%s: %s\n  %s: %s\n", verdict, e.Request, e.Reason, e.Text)
	if e.Nearest != nil {
		fmt.Fprintf(w, "  nearest rule: %s\n", *e.Nearest)
	}
	if e.Fix != "" {
		fmt.Fprintf(w, "  fix: %s\n", e.Fix)
	}
}
