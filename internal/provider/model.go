package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
)

type model struct {
	DefaultBackend types.String `tfsdk:"default_backend"`
	Docker         *docker      `tfsdk:"docker"`
	Memory         *memory      `tfsdk:"memory"`
	Policy         *rules       `tfsdk:"policy"`
}

type docker struct {
	Host         types.String `tfsdk:"host"`
	Certs        types.String `tfsdk:"certs"`
	Plain        types.Bool   `tfsdk:"plain"`
	Image        types.String `tfsdk:"image"`
	Runtime      types.String `tfsdk:"runtime"`
	StorageQuota types.Bool   `tfsdk:"storage_quota"`
	AddressPool  types.String `tfsdk:"address_pool"`
	Uplink       types.String `tfsdk:"uplink"`
	DNS          types.String `tfsdk:"dns"`
	KeeperSocket types.String `tfsdk:"keeper_socket"`
	KeeperImage  types.String `tfsdk:"keeper_image"`
}

type memory struct {
	World types.String `tfsdk:"world"`
}

// expand fills the doors' options. known is false while a value of the
// configuration is not known yet.
func (m model) expand(ctx context.Context, diags *diag.Diagnostics) (c estate.Config, known bool) {
	known = !m.DefaultBackend.IsUnknown()
	c.Default = m.DefaultBackend.ValueString()
	if d := m.Docker; d != nil {
		for _, v := range []interface{ IsUnknown() bool }{d.Host, d.Certs, d.Plain, d.Image, d.Runtime, d.StorageQuota, d.AddressPool, d.Uplink, d.DNS, d.KeeperSocket, d.KeeperImage} {
			known = known && !v.IsUnknown()
		}
		c.Docker = &estate.Docker{
			Host: d.Host.ValueString(), Certs: d.Certs.ValueString(), Plain: d.Plain.ValueBool(), Image: d.Image.ValueString(), Runtime: d.Runtime.ValueString(),
			AddressPool: d.AddressPool.ValueString(), Uplink: d.Uplink.ValueString(), DNS: d.DNS.ValueString(),
			StorageQuota: d.StorageQuota.ValueBool(), KeeperSocket: d.KeeperSocket.ValueString(), KeeperImage: d.KeeperImage.ValueString(),
		}
	}
	if m.Memory != nil {
		known = known && !m.Memory.World.IsUnknown()
		c.Memory = &estate.Memory{Name: m.Memory.World.ValueString()}
	}
	if m.Policy != nil {
		var all bool
		c.Policy, all = m.Policy.expand(ctx, diags)
		known = known && all
	}
	return c, known
}
