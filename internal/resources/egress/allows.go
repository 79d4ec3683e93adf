package egress

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
)

type allowsFunction struct{}

// NewAllows makes egress_allows.
func NewAllows() function.Function { return allowsFunction{} }

func (allowsFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "egress_allows"
}

func (allowsFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Whether an allowlist allows a connection",
		MarkdownDescription: "Whether rules allow a TCP connection to a host or an address, decided by the code that decides in a sandbox. No rules allow nothing. " +
			"A rule for a host does not allow the addresses of that host by themselves, and a rule for a CIDR opens a protected range, as the private and the " +
			"link-local ones, only if it is that range or a part of it. Whether a backend can enforce the rule is not asked, nor what the policy says of it: " +
			"a sandbox or a network policy with rules that cannot be enforced is refused. `sandboxio egress explain` says why a connection is allowed or not, " +
			"and which rules cannot be enforced.",
		Parameters: []function.Parameter{
			function.ListParameter{
				Name: "rules", ElementType: network.RuleType,
				MarkdownDescription: "Rules as `canonical_egress` gives them, and as `sandboxio_network_policy` has them in `canonical.egress`.",
			},
			function.StringParameter{Name: "request", MarkdownDescription: "A host or an address, and a port: `example.com:443`, `203.0.113.9:8022`, `[2001:db8::1]:443`."},
		},
		Return: function.BoolReturn{},
	}
}

func (allowsFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var rules types.List
	var word string
	if resp.Error = req.Arguments.Get(ctx, &rules, &word); resp.Error != nil {
		return
	}
	e, diags := network.Value{Egress: rules}.Expand(ctx)
	if diags.HasError() {
		resp.Error = function.FuncErrorFromDiags(ctx, diags)
		return
	}
	if e.Problems != nil {
		resp.Error = argumentError(0, e.Problems)
		return
	}
	if !e.Known() {
		resp.Error = resp.Result.Set(ctx, types.BoolUnknown())
		return
	}
	ascii, err := wish.Word("request", word)
	var r egress.Request
	if err == nil {
		r, err = egress.ParseRequest("request", ascii)
	}
	if err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	p, err := egress.Compile(e.Network.Egress, egress.Options{})
	if err != nil {
		resp.Error = argumentError(0, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, p.Decide(r).Allowed)
}
