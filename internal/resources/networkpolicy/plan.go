package networkpolicy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// ModifyPlan judges the plan and computes the canonical form.
func (r *policyResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	report := judge.Report{Diags: &resp.Diagnostics, Places: places, Exists: exists}
	e, diags := plan.value().Expand(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.settle(ctx, &plan, e, report, policy.StagePlan, state)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// settle is what a policy has to pass, in the plan and before it enters the
// state; prior is what the state holds, if anything. The canonical form needs
// no provider, so it is computed even while that is not known.
func (r *policyResource) settle(ctx context.Context, m *model, e network.Expanded, report judge.Report, stage policy.Stage, prior model) {
	m.forget()
	if e.Problems != nil {
		report.Error("Invalid network policy", e.Problems)
		return
	}
	if e.Known() {
		n, err := network.Canonical(e.Network)
		if err != nil {
			report.Error("Invalid network policy", err)
			return
		}
		m.Canonical, m.Digest = network.Flatten(n).Object(), types.StringValue(egress.Digest(n))
		m.ID = m.Digest
	}
	report.Unchanged = report.Exists && prior.Digest.Equal(m.Digest)
	if !r.site.Known() {
		report.Later()
		if report.Unchanged {
			m.Mechanisms = prior.Mechanisms
		}
		return
	}
	if e.Known() {
		const summary = "No backend can enforce this"
		n, _ := network.Canonical(e.Network) // as above
		var err error
		m.Mechanisms, err = mechanisms(ctx, r.site, n, e.Network.Egress)
		switch {
		case err == nil:
		case report.Unchanged:
			report.Warn(summary, err.Error())
		default:
			report.Error(summary, err)
		}
	}
	report.Judge(ctx, r.site.Policy(), policy.Input{
		Kind: policy.KindNetworkPolicy, Stage: stage, Name: m.Name.ValueString(), Unknown: e.Unknown,
		Resource: policy.Resource{Network: policy.NetworkOf(e.Network)},
	})
}

// judged is settle for a policy whose values are all known. It gives the text
// that identifies the policy.
func (r *policyResource) judged(ctx context.Context, m *model, diags *diag.Diagnostics) string {
	e, d := m.value().Expand(ctx)
	diags.Append(d...)
	if diags.HasError() {
		return ""
	}
	if !r.site.Known() {
		diags.AddError("The policy is not known", "The provider's configuration is not known, so nothing can judge this network policy.\n\nFix: apply what the provider block refers to first, with -target")
		return ""
	}
	planned := m.Digest
	r.settle(ctx, m, e, judge.Report{Diags: diags, Places: places}, policy.StageApply, model{})
	if diags.HasError() {
		return ""
	}
	if !planned.IsNull() && !planned.IsUnknown() && !planned.Equal(m.Digest) {
		diags.AddAttributeError(path.Root("digest"), "The network policy is not what was planned", "This is a bug in the provider, please report it.")
	}
	n, _ := network.Canonical(e.Network) // settle went well
	return egress.Encode(m.Name.ValueString(), n)
}
