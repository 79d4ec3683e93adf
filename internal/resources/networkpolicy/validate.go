package networkpolicy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
)

// ValidateConfig refuses what is written and cannot be read, as plan does, from
// terraform validate on. What is not known yet is left to the plan.
func (r *policyResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	e, diags := config.value().Expand(ctx)
	resp.Diagnostics.Append(diags...)
	judge.Report{Diags: &resp.Diagnostics, Places: places}.Error("Invalid network policy", e.Malformed())
}
