package networkpolicy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
)

type policyResource struct{ site *site.Site }

var (
	_ resource.ResourceWithConfigure      = (*policyResource)(nil)
	_ resource.ResourceWithIdentity       = (*policyResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*policyResource)(nil)
	_ resource.ResourceWithImportState    = (*policyResource)(nil)
	_ resource.ResourceWithValidateConfig = (*policyResource)(nil)
)

// NewResource makes sandboxio_network_policy.
func NewResource() resource.Resource { return &policyResource{} }

func (r *policyResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_network_policy"
	resp.ResourceBehavior.MutableIdentity = true // a value is what it contains
}

func (r *policyResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.site = site.Of(req.ProviderData, &resp.Diagnostics)
}

func (r *policyResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.put(ctx, req.Plan, &resp.State, resp.Identity, &resp.Diagnostics)
}

func (r *policyResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.put(ctx, req.Plan, &resp.State, resp.Identity, &resp.Diagnostics)
}

func (r *policyResource) put(ctx context.Context, plan tfsdk.Plan, state *tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	var m model
	diags.Append(plan.Get(ctx, &m)...)
	if diags.HasError() {
		return
	}
	id := r.judged(ctx, &m, diags)
	if diags.HasError() {
		return
	}
	diags.Append(state.Set(ctx, m)...)
	diags.Append(identity.SetAttribute(ctx, path.Root("id"), id)...)
}

// Read changes nothing: a value cannot drift.
func (r *policyResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	e, diags := m.value().Expand(ctx)
	resp.Diagnostics.Append(diags...)
	n, err := network.Canonical(e.Network)
	if err != nil {
		judge.Report{Diags: &resp.Diagnostics}.Error("The state holds a network policy that cannot be read", err)
		return
	}
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), egress.Encode(m.Name.ValueString(), n))...)
}

// Delete has nothing to remove but the state.
func (r *policyResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// ImportState takes the policy as JSON, and judges it like a creation.
func (r *policyResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	text := req.ID
	if text == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("id"), &text)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	name, n, err := decode(text)
	if err == nil {
		n, err = network.Canonical(n)
	}
	if err != nil {
		judge.Report{Diags: &resp.Diagnostics}.Error("Not a network policy", err)
		return
	}
	v := network.Flatten(n)
	m := model{Name: types.StringValue(name), Egress: v.Egress, Expose: v.Expose, Mode: v.Mode, Learn: v.Learn}
	id := r.judged(ctx, &m, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), id)...)
}
