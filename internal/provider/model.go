package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
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
	StorageQuota types.Bool   `tfsdk:"storage_quota"`
	KeeperSocket types.String `tfsdk:"keeper_socket"`
	KeeperImage  types.String `tfsdk:"keeper_image"`
}

type memory struct {
	World types.String `tfsdk:"world"`
}

type rules struct {
	Sources types.Map `tfsdk:"sources"`
}

// expand fills the doors' options. known is false while a value of the
// configuration is not known yet.
func (m model) expand(ctx context.Context, diags *diag.Diagnostics) (c estate.Config, known bool) {
	known = !m.DefaultBackend.IsUnknown()
	c.Default = m.DefaultBackend.ValueString()
	if d := m.Docker; d != nil {
		for _, v := range []interface{ IsUnknown() bool }{d.Host, d.Certs, d.Plain, d.Image, d.StorageQuota, d.KeeperSocket, d.KeeperImage} {
			known = known && !v.IsUnknown()
		}
		c.Docker = &estate.Docker{
			Host: d.Host.ValueString(), Certs: d.Certs.ValueString(), Plain: d.Plain.ValueBool(), Image: d.Image.ValueString(),
			StorageQuota: d.StorageQuota.ValueBool(), KeeperSocket: d.KeeperSocket.ValueString(), KeeperImage: d.KeeperImage.ValueString(),
		}
	}
	if m.Memory != nil {
		known = known && !m.Memory.World.IsUnknown()
		c.Memory = &estate.Memory{Name: m.Memory.World.ValueString()}
	}
	if m.Policy == nil || m.Policy.Sources.IsUnknown() {
		return c, known && m.Policy == nil
	}
	elements := map[string]types.String{}
	diags.Append(m.Policy.Sources.ElementsAs(ctx, &elements, false)...)
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		known = known && !elements[name].IsUnknown()
		c.Policy.Sources = append(c.Policy.Sources, policy.Source{Name: name, Dir: elements[name].ValueString()})
	}
	return c, known
}

// report puts the problems of a configuration on its attributes.
func report(diags *diag.Diagnostics, summary string, err error) {
	judge.Report{Diags: diags, Places: judge.Same("default_backend", "policy").
		With("policy.sources", path.Root("policy").AtName("sources"))}.Error(summary, err)
}
