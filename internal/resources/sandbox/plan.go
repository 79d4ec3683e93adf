package sandbox

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// importedKey is there, in the private state, for a sandbox that was imported:
// "true" while its environment, labels and command are not known, since no
// backend tells them, and "false" once they were taken from a configuration.
const importedKey = "imported"

// ModifyPlan decides what a change means, and has the backend and the policy
// say whether the sandbox could be made.
func (r *sandboxResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan, config, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	exists := !req.State.Raw.IsNull()
	var observed, imported bool
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		mark, diags := req.Private.GetKey(ctx, importedKey)
		resp.Diagnostics.Append(diags...)
		observed, imported = len(mark) > 0, string(mark) == "true"
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Backend = r.site.Name(config.Backend, plan.Backend)
	wanted := plan // with the whole manifest, where the plan may keep its digest
	unchanged := exists
	if exists {
		plan.Template = equivalent(state.Template, plan.Template)
		if observed {
			plan.Lifetime = observedAs(state.Lifetime, plan.Lifetime)
		}
		replace, adopt := changes(plan, state, imported)
		unchanged = len(replace)+len(adopt) == 0
		switch {
		case len(replace) > 0:
			resp.RequiresReplace = append(resp.RequiresReplace, replace...)
			plan.forget()
		case state.Status.ValueString() == statusExpired && plan.RecreateOnExpiry.ValueBool():
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("status"))
			plan.forget()
			unchanged = false
		default:
			plan.keep(state)
		}
		for _, at := range adopt {
			if imported && !at.Equal(path.Root("template")) {
				resp.Diagnostics.AddAttributeWarning(at, "Taken from the configuration", "The sandbox was imported, and no backend tells this of a sandbox that exists. The state takes what the configuration says, unchecked.")
			}
		}
	}
	// A stopped policy does not stop what is there, but an import is judged
	// like a creation.
	report := judge.Report{Diags: &resp.Diagnostics, Places: inside, Exists: exists, Unchanged: unchanged && !imported}
	if !(unchanged && state.Status.ValueString() == statusExpired) {
		wanted.Start = config.Start // the only place that has the secrets' names
		r.check(ctx, wanted, report)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// changes are the attributes that differ from the state: those that need
// another sandbox, and those that only the state has to learn.
func changes(plan, state model, imported bool) (replace, adopt path.Paths) {
	differ := func(name string, same, cheap bool) {
		switch at := path.Root(name); {
		case same:
		case cheap:
			adopt = append(adopt, at)
		default:
			replace = append(replace, at)
		}
	}
	differ("backend", plan.Backend.Equal(state.Backend), false)
	differ("template", plan.Template.Equal(state.Template), sameButPolicy(plan.Template, state.Template))
	differ("lifetime", plan.Lifetime.Equal(state.Lifetime), false)
	differ("env", plan.Env.Equal(state.Env), imported)
	differ("labels", plan.Labels.Equal(state.Labels), imported)
	differ("start", plan.Start.Equal(state.Start), imported)
	return replace, adopt
}

// check asks the backend, which does no I/O for it, and the policy.
func (r *sandboxResource) check(ctx context.Context, m model, report judge.Report) {
	const summary = "Invalid sandbox"
	spec, known, err := m.expand()
	if err != nil {
		report.Error(summary, err)
		return
	}
	cmd, startKnown, diags, err := m.expandStart(ctx)
	report.Diags.Append(diags...)
	atStart := report
	atStart.Places = ofStart
	if err != nil {
		atStart.Error(summary, err)
		return
	}
	if cmd != nil && startKnown {
		if err := validate(*cmd, spec.Template); err != nil {
			atStart.Error(summary, err)
			return
		}
	}
	if !r.site.Known() {
		report.Later()
		return
	}
	if cmd != nil {
		r.judgeStart(ctx, spec.Template, *cmd, report)
	}
	if !known || m.Backend.IsUnknown() {
		report.Later()
		return
	}
	rt, err := r.site.Runtime(ctx, m.Backend.ValueString())
	if err != nil {
		report.Error("Unknown backend", err)
		return
	}
	plan, err := rt.Check(ctx, spec)
	if err != nil {
		report.Error("The sandbox cannot be made", err)
		return
	}
	if report.Unchanged {
		return // it was said when the sandbox was made
	}
	for _, w := range plan.Warnings {
		report.Warn("The sandbox comes with a warning", w)
	}
}

// parse reads a manifest; nil for anything else, a bare digest above all.
func parse(s string) *sandbox.Template {
	t, err := sandbox.ParseTemplate([]byte(s))
	if err != nil {
		return nil
	}
	return t
}
