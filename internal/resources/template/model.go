package template

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
)

type model struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	Backend       types.String `tfsdk:"backend"`
	Image         types.String `tfsdk:"image"`
	Isolation     types.String `tfsdk:"isolation"`
	Trust         types.String `tfsdk:"trust"`
	TrustReason   types.String `tfsdk:"trust_reason"`
	MultiTenant   types.Bool   `tfsdk:"multi_tenant"`
	Profile       types.String `tfsdk:"profile"`
	Lifetime      types.String `tfsdk:"lifetime"`
	Resources     types.Object `tfsdk:"resources"`
	NetworkPolicy types.Object `tfsdk:"network_policy"`
	Env           types.Map    `tfsdk:"env"`
	Secrets       types.Set    `tfsdk:"secrets"`
	Labels        types.Map    `tfsdk:"labels"`
	Reaper        types.String `tfsdk:"reaper"`
	Manifest      types.String `tfsdk:"manifest"`
	Digest        types.String `tfsdk:"digest"`
}

// caps is the resources attribute.
type caps struct {
	CPUMillis types.Int64 `tfsdk:"cpu_millis"`
	MemoryMiB types.Int64 `tfsdk:"memory_mib"`
	DiskMiB   types.Int64 `tfsdk:"disk_mib"`
	PIDs      types.Int64 `tfsdk:"pids"`
}

var capTypes = map[string]attr.Type{"cpu_millis": types.Int64Type, "memory_mib": types.Int64Type, "disk_mib": types.Int64Type, "pids": types.Int64Type}

func (c caps) object() types.Object {
	return types.ObjectValueMust(capTypes, map[string]attr.Value{
		"cpu_millis": c.CPUMillis, "memory_mib": c.MemoryMiB, "disk_mib": c.DiskMiB, "pids": c.PIDs,
	})
}

// places are the attributes that fields of orders and findings stand for.
var places = judge.Same("name", "backend", "image", "isolation", "trust", "trust_reason", "multi_tenant", "profile", "lifetime",
	"resources", "env", "secrets", "labels", "reaper").
	With("network", path.Root("network_policy")).
	With("lifetime_seconds", path.Root("lifetime"))

// forget leaves everything computed to be computed.
func (m *model) forget() {
	m.ID, m.Manifest, m.Digest = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
}
