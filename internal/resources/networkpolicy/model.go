package networkpolicy

import (
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
)

type model struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	Egress     types.List   `tfsdk:"egress"`
	Expose     types.Set    `tfsdk:"expose"`
	Mode       types.String `tfsdk:"mode"`
	Learn      types.Bool   `tfsdk:"learn"`
	Canonical  types.Object `tfsdk:"canonical"`
	Digest     types.String `tfsdk:"digest"`
	Mechanisms types.Map    `tfsdk:"mechanisms"`
}

func (m model) value() network.Value {
	return network.Value{Egress: m.Egress, Expose: m.Expose, Mode: m.Mode, Learn: m.Learn}
}

var places = judge.Same("name").With("network", path.Empty())

func (m *model) forget() {
	m.ID, m.Canonical, m.Digest, m.Mechanisms = types.StringUnknown(), network.Unknown(), types.StringUnknown(), types.MapUnknown(byRule)
}
