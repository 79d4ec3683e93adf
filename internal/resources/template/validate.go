package template

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
)

// ValidateConfig refuses a network policy that is written here and cannot be
// read, as plan does, from terraform validate on. What is not known yet is left
// to the plan.
func (r *templateResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	e, diags := network.ExpandObject(ctx, config.NetworkPolicy)
	resp.Diagnostics.Append(diags...)
	judge.Report{Diags: &resp.Diagnostics, Places: places}.Error("Invalid network policy", e.Malformed())
}
