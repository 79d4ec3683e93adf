package reaperschedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/patience"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type scheduleResource struct{ site *site.Site }

var (
	_ resource.ResourceWithConfigure   = (*scheduleResource)(nil)
	_ resource.ResourceWithIdentity    = (*scheduleResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*scheduleResource)(nil)
	_ resource.ResourceWithImportState = (*scheduleResource)(nil)
)

// NewResource makes sandboxio_reaper_schedule.
func NewResource() resource.Resource { return &scheduleResource{} }

func (r *scheduleResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_reaper_schedule"
}

func (r *scheduleResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.site = site.Of(req.ProviderData, &resp.Diagnostics)
}

func (r *scheduleResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const summary = "Unable to create the reaper schedule"
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Create, patience.Create, &resp.Diagnostics)
	defer cancel()
	backend, name := m.Backend.ValueString(), m.Name.ValueString()
	report := judge.Report{Diags: &resp.Diagnostics, Places: places}
	r.judge(ctx, m, report, policy.StageApply)
	if resp.Diagnostics.HasError() {
		return
	}
	s, err := r.scheduler(ctx, backend)
	if err != nil {
		report.Error(summary, err)
		return
	}
	// Putting a schedule replaces one of the same name, which may be somebody
	// else's.
	switch _, err := s.Schedule(ctx, name); {
	case err == nil:
		report.Error(summary, &driver.Error{Code: driver.CodeConflict, Backend: backend, Field: "name",
			Err:  fmt.Errorf("there is a schedule %q already", name),
			Hint: "choose another name, or take it over: terraform import sandboxio_reaper_schedule.<name> " + naming.Join(backend, name)})
		return
	case !errors.Is(err, driver.CodeNotFound):
		report.Error(summary, err)
		return
	}
	if r.put(ctx, s, &m, report, summary); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
}

func (r *scheduleResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const summary = "Unable to change the reaper schedule"
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Update, patience.Update, &resp.Diagnostics)
	defer cancel()
	report := judge.Report{Diags: &resp.Diagnostics, Places: places}
	r.judge(ctx, m, report, policy.StageApply)
	if resp.Diagnostics.HasError() {
		return
	}
	s, err := r.scheduler(ctx, m.Backend.ValueString())
	if err != nil {
		report.Error(summary, err)
		return
	}
	if r.put(ctx, s, &m, report, summary); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
}

func (r *scheduleResource) put(ctx context.Context, s driver.Scheduler, m *model, report judge.Report, summary string) {
	want, _, err := m.expand()
	if err != nil {
		report.Error(summary, err)
		return
	}
	st, err := s.PutSchedule(ctx, want)
	if err != nil {
		report.Error(summary, err)
		return
	}
	m.flatten(m.Backend.ValueString(), st)
}

func (r *scheduleResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
	if !r.site.Known() {
		return // nobody to ask yet; the state stays what it is
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Read, patience.Read, &resp.Diagnostics)
	defer cancel()
	found := r.read(ctx, &m, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if !found {
		resp.State.RemoveResource(ctx)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// read fills m from the backend. Only an answer that says so means gone; no
// answer is an error.
func (r *scheduleResource) read(ctx context.Context, m *model, diags *diag.Diagnostics) (found bool) {
	const summary = "Unable to read the reaper schedule"
	report := judge.Report{Diags: diags, Places: places}
	s, err := r.scheduler(ctx, m.Backend.ValueString())
	if err != nil {
		report.Error(summary, err)
		return false
	}
	st, err := s.Schedule(ctx, m.Name.ValueString())
	switch {
	case errors.Is(err, driver.CodeNotFound) || errors.Is(err, driver.CodeGone):
		return false
	case err != nil:
		report.Error(summary, err)
		return false
	}
	m.flatten(m.Backend.ValueString(), st)
	return true
}

func (r *scheduleResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	const summary = "Unable to delete the reaper schedule"
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := patience.Limit(ctx, m.Timeouts.Delete, patience.Delete, &resp.Diagnostics)
	defer cancel()
	report := judge.Report{Diags: &resp.Diagnostics, Places: places}
	s, err := r.scheduler(ctx, m.Backend.ValueString())
	if err == nil {
		err = s.DeleteSchedule(ctx, m.Name.ValueString())
	}
	if err != nil {
		report.Error(summary, err)
		return
	}
	if _, err := s.Schedule(ctx, m.Name.ValueString()); !errors.Is(err, driver.CodeNotFound) && !errors.Is(err, driver.CodeGone) {
		if err == nil {
			err = &driver.Error{Code: driver.CodeLeaked, Backend: m.Backend.ValueString(), Err: errors.New("it is still there after its deletion"), Hint: "run terraform destroy again"}
		}
		report.Error(summary, err)
	}
}

// ImportState takes "<backend>/<name>", and judges what runs there like a
// creation.
func (r *scheduleResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("id"), &id)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	report := judge.Report{Diags: &resp.Diagnostics}
	backend, name, err := naming.Split(id)
	if err != nil {
		report.Error("Not an import id", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Read)
	defer cancel()
	m := model{Name: types.StringValue(name), Backend: types.StringValue(backend), Timeouts: patience.None()}
	if found := r.read(ctx, &m, &resp.Diagnostics); !found || resp.Diagnostics.HasError() {
		if !resp.Diagnostics.HasError() {
			report.Error("There is nothing to import", &driver.Error{Code: driver.CodeNotFound, Backend: backend, Err: fmt.Errorf("there is no schedule %q", name)})
		}
		return
	}
	if r.judge(ctx, m, report, policy.StageApply); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
}
