package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/patience"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ImportState takes "<backend>/<id>" of a detached sandbox that was made from a
// template. It is judged by what the backend tells of it; the plan that follows
// judges the rest, and refuses like a creation.
func (r *sandboxResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	const summary = "Unable to import the sandbox"
	id := req.ID
	if id == "" && req.Identity != nil {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("id"), &id)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	report := judge.Report{Diags: &resp.Diagnostics}
	backend, native, err := naming.Split(id)
	if err != nil {
		report.Error("Not an import id", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Read)
	defer cancel()
	rt, err := r.site.Runtime(ctx, backend)
	if err != nil {
		report.Error(summary, err)
		return
	}
	sb, err := rt.Attach(ctx, native)
	if err != nil {
		report.Error(summary, err)
		return
	}
	st := sb.Status()
	if err := importable(st); err != nil {
		report.Error(summary, err)
		return
	}
	if st.State == driver.StateRunning && rt.Info().Can(driver.CanFiles) {
		// Labels say what somebody wrote. The first look inside joins the
		// guest and measures what holds, or refuses it.
		if _, err := sb.Files().Stat(ctx, "/work"); err != nil {
			report.Error(summary, err)
			return
		}
		st = sb.Status()
	}
	if report.Judge(ctx, r.site.Policy(), observed(rt.Info(), st)) {
		return
	}
	empty := types.MapValueMust(types.StringType, map[string]attr.Value{})
	m := model{
		Backend: types.StringValue(backend), Template: types.StringValue(st.Facts.Template), Lifetime: types.StringValue(duration.Format(lifetime(st))),
		Env: empty, Labels: empty, Start: types.ObjectNull(startTypes), RecreateOnExpiry: types.BoolValue(false), Timeouts: patience.None(),
	}
	m.flatten(st)
	m.measure(st)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), id)...)
}

func importable(st driver.Status) error {
	refuse := func(problem, fix string) error {
		return &driver.Error{Code: driver.CodeInvalid, Backend: st.Backend, Sandbox: st.ID, Err: errors.New(problem), Hint: fix}
	}
	switch {
	case !st.Detached:
		return refuse("it belongs to the program that made it, and ends with it", "import detached sandboxes only")
	case st.Facts.Template == "":
		return refuse("it was not made from a template, so nothing says what was reviewed", "make it anew from a sandboxio_template")
	}
	return nil
}

// lifetime is what was asked for, as far as whole seconds tell.
func lifetime(st driver.Status) time.Duration { return st.Deadline.Sub(st.Created).Round(time.Second) }

// observed is the sandbox as the policy can judge it from outside; the rest is
// not known, and never taken for missing.
func observed(info driver.Info, st driver.Status) policy.Input {
	spec := driver.Spec{Image: st.Image, Isolation: st.Isolation, Lifetime: lifetime(st), Labels: st.Labels, Facts: st.Facts, Detached: st.Detached}
	return policy.Input{
		Kind: policy.KindSandbox, Stage: policy.StagePlan,
		Resource: policy.FromSpec(info, spec, driver.Plan{Isolation: st.Isolation}, nil),
		Unknown:  []string{"network", "resources", "env", "trust", "trust_reason", "multi_tenant", "profile", "secrets"},
	}
}
