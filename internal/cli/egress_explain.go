package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// explained is what explain prints as JSON. "allowed" is what the rules say;
// the verdict also asks whether there can be a sandbox with them.
type explained struct {
	Schema  string      `json:"schema"`
	Verdict string      `json:"verdict"` // "allowed", "refused", or "unenforceable" for what is allowed by a list that no sandbox can be made with
	Mode    driver.Mode `json:"mode"`
	egress.Explanation
	Unenforceable []unenforceable `json:"unenforceable"` // rules of the list, whether or not the request is theirs
}

// unenforceable is a rule that no sandbox can be made with, and why.
type unenforceable struct {
	Rule string `json:"rule"` // canonical
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

func (a *app) egressExplainCommand() *cobra.Command {
	var at, mode string
	c := &cobra.Command{
		Use:   "explain FILE HOST:PORT",
		Short: "Say why an allowlist allows a request, or refuses it",
		Long: `Say whether an allowlist allows a TCP connection, by which rule, and if not, why
and which rule comes nearest. A list with a rule that cannot be enforced in the
mode of the network is refused as a whole when a sandbox is made; such rules are
told. No rule is advised that the built-in policy denies; what it says of those that
there are, sandboxio egress lint tells.
` + allowlistHelp + `

Exit codes: 0 allowed, 1 failed, 2 refused, or no sandbox can be made with the
list.`,
		Example: `  sandboxio egress explain rules.txt api.example.com:443
  sandboxio egress explain rules.txt api.example.com:443 --at 10.0.0.1
  echo '*.example.com' | sandboxio egress explain --mode proxy - '[2001:db8::1]:443'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := parseRequest(args[1], at)
			if err != nil {
				return err
			}
			l, err := a.readAllowlist(args[0])
			if err != nil {
				return err
			}
			m, err := l.modeOf(mode)
			if err != nil {
				return err
			}
			e, err := l.explain(cmd.Context(), r, m)
			if err != nil {
				return err
			}
			if err := a.print(e, e.text); err != nil {
				return err
			}
			if e.Verdict != "allowed" {
				return exitDenied
			}
			return nil
		},
	}
	c.Flags().StringVar(&at, "at", "", "the address that the host resolves to")
	modeFlag(c, &mode)
	a.jsonFlag(c)
	return c
}

func parseRequest(word, at string) (egress.Request, error) {
	ascii, err := wish.Word("request", word)
	if err != nil {
		return egress.Request{}, err
	}
	r, err := egress.ParseRequest("request", ascii)
	if err != nil || at == "" {
		return r, err
	}
	if r.Host == "" {
		return r, driver.Invalid("at", "the request is an address already", "leave --at out")
	}
	if r.Addr, err = netip.ParseAddr(at); err != nil {
		return r, driver.Invalid("at", fmt.Sprintf("%+q is no address", at), "give what the host resolves to, as 203.0.113.9")
	}
	return r, nil
}

func (l allowlist) explain(ctx context.Context, r egress.Request, mode driver.Mode) (explained, error) {
	if err := l.refusal(); err != nil {
		return explained{}, err
	}
	p, err := egress.Compile(l.rules, egress.Options{})
	if err != nil {
		return explained{}, err
	}
	engine, err := policy.Load(ctx, policy.Options{})
	if err != nil {
		return explained{}, err
	}
	e := explained{Schema: "sandboxio.egress.explain/v1", Verdict: "refused", Mode: mode, Explanation: p.Explain(r), Unenforceable: []unenforceable{}}
	if e.Unenforceable, err = refusals(ctx, engine, p.Rules(), mode); err != nil {
		return e, err
	}
	if e.Missing != nil {
		if err := e.readvise(ctx, engine); err != nil {
			return e, err
		}
	}
	switch {
	case e.Allowed && len(e.Unenforceable) > 0:
		e.Verdict = "unenforceable"
	case e.Allowed:
		e.Verdict = "allowed"
	}
	return e, nil
}

// refusals are the canonical rules that cannot be enforced, with fixes that the
// policy does not deny.
func refusals(ctx context.Context, engine *policy.Engine, rules []driver.Rule, mode driver.Mode) ([]unenforceable, error) {
	out := []unenforceable{}
	denied := map[uint16]string{} // by port, "" for one that is not
	for _, rule := range rules {
		_, err := egress.Mechanisms(driver.Network{Egress: []driver.Rule{rule}, Mode: mode})
		for _, p := range driver.Problems(err) {
			fix := p.Hint
			if mute, ok := errors.AsType[*egress.MuteError](p); ok {
				if _, known := denied[mute.Port]; !known {
					by, err := deniedPorts(ctx, engine, mode, []uint16{mute.Port})
					if err != nil {
						return nil, err
					}
					denied[mute.Port] = by[mute.Port]
				}
				fix = muteFix(rule, mute.Port, denied)
			}
			out = append(out, unenforceable{rule.String(), p.Err.Error(), fix})
		}
	}
	return out, nil
}

// readvise takes advice back that nobody could follow: a rule that the policy
// denies, or that cannot be enforced.
func (e *explained) readvise(ctx context.Context, engine *policy.Engine) error {
	rule := []driver.Rule{*e.Missing}
	judged, err := allowlist{rules: rule}.judge(ctx, engine, e.Mode)
	if err != nil {
		return err
	}
	for _, f := range judged {
		if f.Effect == sandbox.Deny {
			e.Fix = fmt.Sprintf("the policy denies a rule for %s by %s: %s", e.Missing, f.Policy, f.Fix)
			return nil
		}
	}
	_, err = egress.Mechanisms(driver.Network{Egress: rule, Mode: e.Mode})
	if err == nil {
		return nil
	}
	p := driver.Problems(err)[0]
	hint := p.Hint
	if mute, ok := errors.AsType[*egress.MuteError](p); ok { // what is not there cannot be removed, and the policy lets others have the port
		hint = fmt.Sprintf("only a rule for a CIDR can have port %d", mute.Port)
	}
	e.Fix = fmt.Sprintf("%s; as it is, a rule for %s cannot be enforced: %v", hint, e.Missing, p.Err)
	return nil
}

func (e explained) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n  %s: %s\n", e.Verdict, e.Request, e.Reason, e.Text)
	if e.Nearest != nil {
		fmt.Fprintf(w, "  nearest rule: %s\n", *e.Nearest)
	}
	if e.Fix != "" {
		fmt.Fprintf(w, "  fix: %s\n", e.Fix)
	}
	if len(e.Unenforceable) > 0 {
		fmt.Fprintf(w, "no sandbox can be made with this list in mode %s:\n", e.Mode)
	}
	for _, u := range e.Unenforceable {
		fmt.Fprintf(w, "  %s: %s\n    fix: %s\n", u.Rule, u.Text, u.Fix)
	}
}
