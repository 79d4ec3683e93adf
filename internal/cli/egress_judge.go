package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// kindPolicy is what the policy says of a rule and lint itself does not.
const kindPolicy egress.Kind = "policy"

// judge is what a policy says of the list as a network policy. The
// index of each finding is in l.rules.
func (l allowlist) judge(ctx context.Context, engine *policy.Engine, mode driver.Mode) ([]linted, error) {
	v, err := engine.Judge(ctx, policy.Input{
		Kind: policy.KindNetworkPolicy, Stage: policy.StagePlan, Name: l.name,
		Resource: policy.Resource{Network: policy.NetworkOf(driver.Network{Egress: l.rules, Expose: l.expose, Mode: mode})},
	})
	if err != nil {
		return nil, err
	}
	var out []linted
	for _, f := range v.Findings {
		index, field := placeOf(f.Path)
		one := linted{Place: l.from, Index: index, Kind: kindPolicy, Policy: f.Rule, Effect: effectOf(f), Field: field, Text: f.Message, Fix: f.Remediation}
		if index < 0 && field != "" {
			one.Place += ": " + field
		}
		if f.Waiver != nil {
			one.Text += "; " + f.Waiver.String()
		}
		out = append(out, one)
	}
	return out, nil
}

// effectOf is deny for all that is no warning and that no waiver excuses, as
// for an evaluation that failed.
func effectOf(f sandbox.Finding) sandbox.Decision {
	if f.Effect == sandbox.Warn || f.Effect == sandbox.Waived {
		return f.Effect
	}
	return sandbox.Deny
}

// placeOf reads "network.egress[2].cidr" as 2 and "cidr". Without a number it
// is about the list as a whole.
func placeOf(path string) (index int, field string) {
	path = strings.TrimPrefix(path, "network.")
	rest, ok := strings.CutPrefix(path, "egress[")
	if !ok {
		return -1, path
	}
	if n, err := fmt.Sscanf(rest, "%d", &index); n != 1 || err != nil {
		return -1, path
	}
	_, field, _ = strings.Cut(rest, "].")
	return index, field
}

// deniedPorts are those of the ports that the policy denies to any rule, one
// for a CIDR included, with the id of its rule.
func deniedPorts(ctx context.Context, engine *policy.Engine, mode driver.Mode, ports []uint16) (map[uint16]string, error) {
	var l allowlist
	for _, p := range ports {
		l.rules = append(l.rules, driver.Rule{Prefix: netip.MustParsePrefix("203.0.113.7/32"), Ports: []uint16{p}}) // of nobody
	}
	denied := map[uint16]string{}
	if len(ports) == 0 {
		return denied, nil
	}
	judged, err := l.judge(ctx, engine, mode)
	for _, f := range judged {
		if f.Index >= 0 && f.Field == "ports" && f.Effect == sandbox.Deny {
			denied[ports[f.Index]] = f.Policy
		}
	}
	return denied, err
}

// muteFix is how a canonical rule for a host gets rid of a port on which no
// host is named, and whether a CIDR would do, as denied knows.
func muteFix(r driver.Rule, port uint16, denied map[uint16]string) string {
	fix := egress.Without(r, port)
	if id := denied[port]; id != "" {
		return fmt.Sprintf("%s; the policy denies port %d to a CIDR too (%s)", fix, port, id)
	}
	return fmt.Sprintf("%s; only a rule for a CIDR can have port %d", fix, port)
}

// alike are the rules of the policy that say what a finding of lint says.
var alike = map[egress.Kind][]string{
	egress.KindMetadata:  {"SBX-NET-004"},
	egress.KindProtected: {"SBX-NET-004", "SBX-NET-005"},
	egress.KindNever:     {"SBX-NET-005"},
	egress.KindWide:      {"SBX-NET-002", "SBX-NET-003", "SBX-NET-009"},
	egress.KindResolver:  {"SBX-NET-011"},
}

// together are the findings of lint and of the policy, by rule. What both say
// is told once: in lint's words, with the fix and the effect of the policy.
func together(own []egress.Finding, judged []linted) []linted {
	type key struct {
		rule int
		id   string
	}
	places := map[key][]int{} // in judged
	for i, f := range judged {
		k := key{f.Index, f.Policy}
		places[k] = append(places[k], i)
	}
	said := make([]bool, len(judged))
	var out []linted
	for _, f := range own {
		one := linted{Index: f.Rule, Kind: f.Kind, Effect: sandbox.Warn, Field: f.Field, Text: f.Text, Fix: f.Fix}
		if f.Deny {
			one.Effect = sandbox.Deny
		}
		for _, id := range alike[f.Kind] {
			at := slices.IndexFunc(places[key{f.Rule, id}], func(i int) bool { return !said[i] && judged[i].Field == f.Field })
			if at < 0 {
				continue
			}
			i := places[key{f.Rule, id}][at]
			said[i] = true
			one.join(judged[i])
			break
		}
		out = append(out, one)
	}
	for i, f := range judged {
		if !said[i] {
			out = append(out, f)
		}
	}
	return out
}

// join adds what the policy says. What lint denies by itself stays denied.
func (f *linted) join(by linted) {
	f.Policy = by.Policy
	if f.Effect != sandbox.Deny {
		f.Effect = by.Effect
	}
	if by.Effect == sandbox.Waived {
		f.Text = by.Text // and who waives it
	}
	if f.Kind != egress.KindNever { // what leads nowhere is best removed
		f.Fix = by.Fix
	}
}
