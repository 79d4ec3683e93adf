package backend

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type model struct {
	ID           types.String `tfsdk:"id"`
	Name         types.String `tfsdk:"name"`
	Capabilities types.Set    `tfsdk:"capabilities"`
	Isolation    types.String `tfsdk:"isolation"`
	DefaultImage types.String `tfsdk:"default_image"`
	Simulated    types.Bool   `tfsdk:"simulated"`
	Limits       *limits      `tfsdk:"limits"`
}

type limits struct {
	DefaultLifetime types.String `tfsdk:"default_lifetime"`
	MaxLifetime     types.String `tfsdk:"max_lifetime"`
	DefaultTimeout  types.String `tfsdk:"default_timeout"`
	CPUMillis       types.Int64  `tfsdk:"cpu_millis"`
	MemoryMiB       types.Int64  `tfsdk:"memory_mib"`
	DiskMiB         types.Int64  `tfsdk:"disk_mib"`
	PIDs            types.Int64  `tfsdk:"pids"`
}

func flatten(info driver.Info) model {
	can := make([]attr.Value, len(info.Capabilities))
	for i, c := range info.Capabilities {
		can[i] = types.StringValue(string(c))
	}
	m := model{
		ID: types.StringValue(info.Name), Name: types.StringValue(info.Name), Capabilities: types.SetValueMust(types.StringType, can),
		Isolation: types.StringValue(info.Isolation.String()), Simulated: types.BoolValue(info.Simulated), Limits: flattenLimits(),
	}
	if info.DefaultImage != "" {
		m.DefaultImage = types.StringValue(info.DefaultImage)
	}
	return m
}

func flattenLimits() *limits {
	r, err := driver.Resources{}.Resolve()
	if err != nil {
		panic(err) // the defaults are within the bounds
	}
	return &limits{
		DefaultLifetime: types.StringValue(duration.Format(driver.DefaultLifetime)), MaxLifetime: types.StringValue(duration.Format(driver.MaxLifetime)),
		DefaultTimeout: types.StringValue(duration.Format(driver.DefaultTimeout)),
		CPUMillis:      types.Int64Value(r.CPUMillis), MemoryMiB: types.Int64Value(r.MemoryMiB), DiskMiB: types.Int64Value(r.DiskMiB), PIDs: types.Int64Value(r.PIDs),
	}
}
