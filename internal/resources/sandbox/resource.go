package sandbox

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/patience"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type sandboxResource struct{ site *site.Site }

var (
	_ resource.ResourceWithConfigure   = (*sandboxResource)(nil)
	_ resource.ResourceWithIdentity    = (*sandboxResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*sandboxResource)(nil)
	_ resource.ResourceWithImportState = (*sandboxResource)(nil)
)

// NewResource makes sandboxio_sandbox.
func NewResource() resource.Resource { return &sandboxResource{} }

func (r *sandboxResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandbox"
}

func (r *sandboxResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.site = site.Of(req.ProviderData, &resp.Diagnostics)
}

func (r *sandboxResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const summary = "Unable to create the sandbox"
	var m, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Create, patience.Create, &resp.Diagnostics)
	defer cancel()
	report, atStart := judge.Report{Diags: &resp.Diagnostics, Places: inside}, judge.Report{Diags: &resp.Diagnostics, Places: ofStart}

	spec, _, err := m.expand()
	if err != nil {
		report.Error(summary, err)
		return
	}
	cmd, _, diags, err := config.expandStart(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err == nil && cmd != nil {
		err = validate(*cmd, spec.Template)
	}
	if err != nil {
		atStart.Error(summary, err)
		return
	}
	rt, err := r.site.Runtime(ctx, m.Backend.ValueString())
	if err != nil {
		report.Error(summary, err)
		return
	}
	if cmd != nil && r.judgeStart(ctx, spec.Template, *cmd, atStart) {
		return
	}
	// Create has the Guard judge once more before the backend is called.
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		report.Error(summary, err)
		return
	}
	if cmd != nil {
		if _, err := sb.Start(ctx, *cmd); err != nil {
			atStart.Error(summary, driver.Join(err, sb.Close()))
			return
		}
	}
	m.flatten(sb.Status())
	m.measure(sb.Status())
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), naming.Join(m.Backend.ValueString(), m.ID.ValueString()))...)
	if resp.Diagnostics.HasError() {
		if err := sb.Close(); err != nil { // what the state does not hold must not run
			report.Error(summary, err)
		}
	}
}

// Update reaches no backend: what would change the sandbox replaces it.
func (r *sandboxResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("false"))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), naming.Join(m.Backend.ValueString(), m.ID.ValueString()))...)
}

func (r *sandboxResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), naming.Join(m.Backend.ValueString(), m.ID.ValueString()))...)
	if !r.site.Known() {
		return // nobody to ask yet; the state stays what it is
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Read, patience.Read, &resp.Diagnostics)
	defer cancel()
	if m.Status.ValueString() != statusExpired {
		found, err := r.refresh(ctx, &m)
		if err != nil {
			judge.Report{Diags: &resp.Diagnostics, Places: inside}.Error("Unable to read the sandbox", err)
			return
		}
		if !found {
			resp.State.RemoveResource(ctx)
			return
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func (r *sandboxResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Delete, patience.Delete, &resp.Diagnostics)
	defer cancel()
	if err := r.destroy(ctx, m); err != nil {
		judge.Report{Diags: &resp.Diagnostics, Places: inside}.Error("Unable to destroy the sandbox", err)
	}
}
