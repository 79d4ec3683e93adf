package template

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ModifyPlan judges the plan and computes the manifest. It runs in every plan,
// and again in the apply, when everything is known.
func (r *templateResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
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
	e, diags := plan.expand(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	report := judge.Report{Diags: &resp.Diagnostics, Places: places, Exists: exists, Unchanged: exists && same(ctx, e, state)}
	if !r.site.Known() {
		report.Later()
		if !report.Unchanged {
			plan.forget()
		}
	} else if ok := r.settle(ctx, &plan, e, report, policy.StagePlan); !ok && report.Unchanged {
		plan.ID, plan.Manifest, plan.Digest = state.ID, state.Manifest, state.Digest
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// same reports whether the configuration says what the state says, however it
// is written.
func same(ctx context.Context, e expanded, state model) bool {
	old, diags := state.expand(ctx)
	if diags.HasError() || !old.known() || !e.known() {
		return false
	}
	a, aerr := e.template.Digest()
	b, berr := old.template.Digest()
	return aerr == nil && berr == nil && a == b
}

// settle is what a template has to pass, in the plan and before it enters the
// state: it is well-formed, the backend can enforce it, the policy allows it.
// Then its manifest is written, if all of it is known.
func (r *templateResource) settle(ctx context.Context, m *model, e expanded, report judge.Report, stage policy.Stage) bool {
	const summary = "Invalid template"
	m.forget()
	ok := true
	if e.err != nil {
		report.Error(summary, e.err)
		return false
	}
	if e.known() {
		if _, err := e.template.Resolve(); err != nil {
			report.Error(summary, written(e.template, err))
			return false
		}
	}
	in := policy.Input{Kind: policy.KindTemplate, Stage: stage, Name: m.Name.ValueString(), Unknown: e.unknown}
	var info driver.Info
	var enforced driver.Plan
	if m.Backend.IsUnknown() {
		in.Unknown = append(in.Unknown, "isolation") // which tier is certain depends on the backend
	} else {
		b, err := r.site.Open(ctx, m.Backend.ValueString())
		if err != nil {
			report.Error("Unknown backend", err)
			return false
		}
		info = b.Info()
		enforced.Isolation = info.Isolation
		if e.known() {
			p, err := Check(ctx, b, e.template)
			if err != nil { // what the policy has to say is still worth hearing
				report.Error("The backend cannot enforce this", written(e.template, err))
				ok = false
			} else {
				enforced = p
			}
		}
	}
	in.Resource = policy.FromSpec(info, wish.Order(e.template, info), enforced, e.template.Secrets)
	if report.Judge(ctx, r.site.Policy(), in) || !ok {
		return false
	}
	if !e.known() {
		return true
	}
	t := e.template
	t.Policy = r.site.Policy().Digest()
	if err := m.compute(t); err != nil {
		report.Error(summary, err)
		return false
	}
	return true
}

// Check asks the backend how it would enforce the template, without I/O. The
// policy is asked apart, since it judges what is written.
func Check(ctx context.Context, b driver.Backend, t sandbox.Template) (driver.Plan, error) {
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a template is judged apart from the check of what the backend can enforce"})
	return rt.Check(ctx, sandbox.Spec{Template: &t})
}

// written moves problems from the canonical order of rules to the one in the
// configuration.
func written(t sandbox.Template, err error) error {
	var all []error
	rules := network.PlacesOf(t.Network.Egress)
	for _, p := range driver.Problems(err) {
		moved := *p
		moved.Field = rules.Written(p.Field)
		all = append(all, &moved)
	}
	return driver.Join(all...)
}

// judged is settle for a template whose values are all known.
func (r *templateResource) judged(ctx context.Context, m *model, diags *diag.Diagnostics) {
	e, d := m.expand(ctx)
	diags.Append(d...)
	if diags.HasError() {
		return
	}
	planned := m.Manifest
	if !r.settle(ctx, m, e, judge.Report{Diags: diags, Places: places}, policy.StageApply) {
		return
	}
	if !planned.IsNull() && !planned.IsUnknown() && !planned.Equal(m.Manifest) {
		diags.AddAttributeError(path.Root("manifest"), "The template is not what was planned",
			"The policy, or the backend, changed between plan and apply.\n\nFix: plan again.")
	}
}
