package reaperschedule

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/keeper"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ModifyPlan judges the plan, and plans to repair what does not run.
func (r *scheduleResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan, config, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Backend = r.site.Name(config.Backend, plan.Backend)
	if exists && !plan.Backend.Equal(state.Backend) {
		resp.RequiresReplace = append(resp.RequiresReplace, places.Of("backend"))
		plan.ID = types.StringUnknown()
	}
	if exists && !plan.Name.Equal(state.Name) {
		plan.ID = types.StringUnknown()
	}
	if plan.ID.IsUnknown() && !plan.Backend.IsUnknown() && !plan.Name.IsUnknown() {
		plan.ID = types.StringValue(naming.Join(plan.Backend.ValueString(), plan.Name.ValueString()))
	}
	unchanged := exists && unchanged(plan, state)
	if unchanged && state.Running.ValueBool() {
		plan.Running, plan.Image, plan.KeeperID = state.Running, state.Image, state.KeeperID
	} else {
		plan.Running, plan.Image, plan.KeeperID = types.BoolValue(true), types.StringUnknown(), types.StringUnknown()
	}
	report := judge.Report{Diags: &resp.Diagnostics, Places: places, Exists: exists, Unchanged: unchanged}
	r.judge(ctx, plan, report, policy.StagePlan)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

func unchanged(plan, state model) bool {
	return plan.Name.Equal(state.Name) && plan.Backend.Equal(state.Backend) && plan.Interval.Equal(state.Interval) && plan.Cron.Equal(state.Cron) &&
		plan.Labels.Equal(state.Labels) && plan.MaxAge.Equal(state.MaxAge) && plan.DryRun.Equal(state.DryRun)
}

// judge is what a schedule has to pass, in the plan and before each call to
// the backend.
func (r *scheduleResource) judge(ctx context.Context, m model, report judge.Report, stage policy.Stage) {
	s, unknown, err := m.expand()
	if err == nil && len(unknown) == 0 {
		err = keeper.Validate(s)
	}
	if err != nil {
		report.Error("Invalid reaper schedule", err)
		return
	}
	if !r.site.Known() {
		report.Later()
		return
	}
	in := policy.Input{Kind: policy.KindReaperSchedule, Stage: stage, Name: m.Name.ValueString(), Unknown: unknown}
	in.Resource = policy.Resource{Labels: s.Labels, Schedule: policy.ScheduleOf(s)}
	if !m.Backend.IsUnknown() {
		if _, err := r.scheduler(ctx, m.Backend.ValueString()); err != nil {
			report.Error("The backend keeps no schedules", err)
			return
		}
		in.Resource.Backend = m.Backend.ValueStringPointer()
	}
	report.Judge(ctx, r.site.Policy(), in)
}

// scheduler asks the backend for the ability, without connecting to it.
func (r *scheduleResource) scheduler(ctx context.Context, name string) (driver.Scheduler, error) {
	b, err := r.site.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	s, ok := driver.As[driver.Scheduler](b)
	if !ok || !b.Info().Can(driver.CanSchedule) {
		return nil, &driver.Error{Code: driver.CodeUnsupported, Backend: name, Field: "backend",
			Err: fmt.Errorf("the backend does not declare %q", string(driver.CanSchedule)), Hint: "choose a backend that does, or run sandboxio reap --kill from a scheduler of your own"}
	}
	return s, nil
}
