package policyfindings

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type findingsFunction struct{}

// NewFunction makes policy_findings.
func NewFunction() function.Function { return findingsFunction{} }

func (findingsFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "policy_findings"
}

func (findingsFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "What the built-in rules say of a manifest",
		MarkdownDescription: "The findings of the built-in rules about a template's manifest, worst first: objects with `rule`, `title`, `severity`, `effect`, " +
			"`message`, `path`, `remediation` and `page`.\n\n" +
			"A function knows nothing but its arguments. It judges by the rules' own parameters, without waivers, rules of your own and the floor, and it knows " +
			"no backend: what depends on one, as the isolation and a default image, has the effect `unknown`. The data source `sandboxio_policy_findings` " +
			"judges by the provider's whole policy.",
		Parameters: []function.Parameter{function.StringParameter{
			Name: "manifest", MarkdownDescription: "The manifest of a template, as `sandboxio_template` has it or written by hand.",
		}},
		Return: function.ListReturn{ElementType: types.ObjectType{AttrTypes: findingTypes()}},
	}
}

func (findingsFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var manifest string
	if resp.Error = req.Arguments.Get(ctx, &manifest); resp.Error != nil {
		return
	}
	t, err := sandbox.ParseTemplate([]byte(manifest))
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, "not a manifest: "+err.Error())
		return
	}
	in := policy.Input{Kind: policy.KindTemplate, Stage: policy.StagePlan, Name: t.Name, Unknown: []string{"isolation"}}
	if t.Image == "" {
		in.Unknown = append(in.Unknown, "image")
	}
	info := driver.Info{Name: t.Backend}
	in.Resource = policy.FromSpec(info, wish.Order(*t, info), driver.Plan{}, t.Secrets)
	v, err := policy.Preview(ctx, in)
	if err != nil {
		resp.Error = function.NewFuncError("the policy could not judge: " + err.Error())
		return
	}
	of := types.ObjectType{AttrTypes: findingTypes()}
	findings := make([]attr.Value, len(v.Findings))
	for i, f := range v.Findings {
		findings[i] = types.ObjectValueMust(of.AttrTypes, flattenFinding(f))
	}
	resp.Error = resp.Result.Set(ctx, types.ListValueMust(of, findings))
}
