package egress

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type canonicalFunction struct{}

// NewCanonical makes canonical_egress.
func NewCanonical() function.Function { return canonicalFunction{} }

func (canonicalFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "canonical_egress"
}

func (canonicalFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Rules of an allowlist, from words",
		MarkdownDescription: "Turns rules written as words into the rules that `sandboxio_network_policy` takes as `egress`, in canonical form: lower case and " +
			"A-labels, ports written out, CIDRs masked, sorted, each target once. What is malformed is an error that names the rule and the fix. " +
			"Whether a backend can enforce the rule is not asked, nor what the policy says of it: `sandboxio_network_policy` asks both, and `sandboxio egress lint` before.",
		Parameters: []function.Parameter{function.ListParameter{
			Name: "rules", ElementType: types.StringType,
			MarkdownDescription: "Each is a host, a wildcard, an address or a CIDR, with ports behind a colon if they are not 80 and 443, divided by commas: `example.com`, `*.example.com:443,8443`, " +
				"`203.0.113.0/24:8022`, `[2001:db8::/32]:443`.",
		}},
		Return: function.ListReturn{ElementType: network.RuleType},
	}
}

func (canonicalFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var words []types.String
	if resp.Error = req.Arguments.Get(ctx, &words); resp.Error != nil {
		return
	}
	if err := driver.CheckCount("rules", len(words)); err != nil {
		resp.Error = argumentError(0, err)
		return
	}
	var rules []driver.Rule
	var errs []error
	for i, w := range words {
		at := fmt.Sprintf("rules[%d]", i)
		switch {
		case w.IsUnknown():
			resp.Error = resp.Result.Set(ctx, types.ListUnknown(network.RuleType))
			return
		case w.IsNull():
			errs = append(errs, driver.Invalid(at, "the rule is null", "remove it, or write a host or a CIDR"))
		default:
			r, err := wish.ParseRule(at, w.ValueString())
			rules, errs = append(rules, r), append(errs, err)
		}
	}
	err := driver.Join(errs...)
	var canonical []driver.Rule
	if err == nil {
		canonical, err = driver.Canonical(rules)
	}
	if err != nil {
		resp.Error = argumentError(0, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, network.Flatten(driver.Network{Egress: canonical}).Egress)
}

// argumentError tells every problem with an argument, each with its fix.
func argumentError(argument int64, err error) *function.FuncError {
	var text strings.Builder
	for _, p := range driver.Problems(err) {
		fmt.Fprintf(&text, "\n%s: %v\n  Fix: %s", p.Field, p.Err, p.Hint)
	}
	return function.NewArgumentFuncError(argument, text.String())
}
