package networkpolicy

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// byRule is by which mechanism each rule is enforced.
var byRule = types.MapType{ElemType: types.StringType}

// noMechanism is said of a rule that a backend refuses.
const noMechanism = "none"

// asked stands for the image, which says nothing about a network.
const asked = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// mechanisms asks every configured backend, without I/O, how it would enforce
// the canonical network n. The error beside it is of the rules that none of them
// can enforce, each with its place among the rules as they are written.
func mechanisms(ctx context.Context, s *site.Site, n driver.Network, written []driver.Rule) (types.Map, error) {
	all := map[string]attr.Value{}
	refused := map[string][]error{} // by the field of a rule
	names := s.Names()
	for _, name := range names {
		b, err := s.Open(ctx, name)
		if err != nil {
			return types.MapNull(byRule), err
		}
		rules := make(map[string]attr.Value, len(n.Egress))
		by, problems := enforced(ctx, b, n)
		for i, r := range n.Egress {
			rules[r.String()] = types.StringValue(by[i])
			if by[i] == noMechanism {
				at := fmt.Sprintf("network.egress[%d]", i)
				refused[at] = append(refused[at], problems[i])
			}
		}
		all[name] = types.MapValueMust(types.StringType, rules)
	}
	var errs []error
	rules := network.PlacesOf(written)
	for i := range n.Egress {
		at := fmt.Sprintf("network.egress[%d]", i)
		if len(refused[at]) < len(names) {
			continue
		}
		for _, p := range driver.Problems(driver.Join(refused[at]...)) {
			moved := *p
			moved.Field = rules.Written(moved.Field)
			errs = append(errs, &moved)
		}
	}
	return types.MapValueMust(byRule, all), driver.Join(errs...)
}

// enforced gives for each rule of n the backend's mechanism, or noMechanism and
// what the backend says to it.
func enforced(ctx context.Context, b driver.Backend, n driver.Network) (by []string, problems []error) {
	by, problems = make([]string, len(n.Egress)), make([]error, len(n.Egress))
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a network policy is judged apart from how it can be enforced"})
	plan, err := rt.Check(ctx, sandbox.Spec{Image: asked, Network: driver.Network{Egress: n.Egress, Mode: n.Mode}, Trust: sandbox.Trusted("nothing runs")})
	for i := range n.Egress {
		if err == nil {
			by[i] = plan.Rules[i].By
			continue
		}
		// One rule's refusal hides how the others are enforced: each is asked
		// for alone.
		one, oneErr := rt.Check(ctx, sandbox.Spec{Image: asked, Network: driver.Network{Egress: n.Egress[i : i+1], Mode: n.Mode}, Trust: sandbox.Trusted("nothing runs")})
		if oneErr == nil {
			by[i] = one.Rules[0].By
			continue
		}
		by[i] = noMechanism
		var moved []error
		for _, p := range driver.Problems(oneErr) {
			at := *p
			_, rest, _ := strings.Cut(p.Field, "network.egress[0]")
			at.Field = fmt.Sprintf("network.egress[%d]%s", i, rest)
			moved = append(moved, &at)
		}
		problems[i] = driver.Join(moved...)
	}
	return by, problems
}
