package sandbox

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
)

type model struct {
	ID               types.String   `tfsdk:"id"`
	Backend          types.String   `tfsdk:"backend"`
	Template         types.String   `tfsdk:"template"`
	Lifetime         types.String   `tfsdk:"lifetime"`
	Env              types.Map      `tfsdk:"env"`
	Labels           types.Map      `tfsdk:"labels"`
	Start            types.Object   `tfsdk:"start"`
	RecreateOnExpiry types.Bool     `tfsdk:"recreate_on_expiry"`
	Status           types.String   `tfsdk:"status"`
	Created          types.String   `tfsdk:"created"`
	Deadline         types.String   `tfsdk:"deadline"`
	Isolation        types.String   `tfsdk:"isolation"`
	Evidence         types.String   `tfsdk:"evidence"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`
}

// start is the start attribute. Secrets are null everywhere but in the
// configuration.
type start struct {
	Command        types.List   `tfsdk:"command"`
	Env            types.Map    `tfsdk:"env"`
	Dir            types.String `tfsdk:"dir"`
	Timeout        types.String `tfsdk:"timeout"`
	Secrets        types.Map    `tfsdk:"secrets_wo"`
	SecretsVersion types.Int64  `tfsdk:"secrets_wo_version"`
}

var startTypes = map[string]attr.Type{
	"command": types.ListType{ElemType: types.StringType}, "env": types.MapType{ElemType: types.StringType},
	"dir": types.StringType, "timeout": types.StringType, "secrets_wo": types.MapType{ElemType: types.StringType}, "secrets_wo_version": types.Int64Type,
}

// statusExpired is the status of a sandbox that reached its deadline; the
// others are the driver's states.
const statusExpired = "expired"

// inside is where problems of the order belong: what is not an attribute here
// comes from the template. ofStart is the same for the start command.
var (
	inside  = judge.Places{Fields: judge.Same("backend", "lifetime", "env", "labels").With("lifetime_seconds", path.Root("lifetime")).Fields, Else: path.Root("template")}
	ofStart = judge.Places{Fields: map[string]path.Path{
		"args": path.Root("start").AtName("command"), "env": path.Root("start").AtName("env"), "dir": path.Root("start").AtName("dir"),
		"timeout": path.Root("start").AtName("timeout"), "secrets": path.Root("start").AtName("secrets_wo"),
	}, Else: path.Root("start")}
)

// forget leaves everything computed to be computed.
func (m *model) forget() {
	u := types.StringUnknown()
	m.ID, m.Status, m.Created, m.Deadline, m.Isolation, m.Evidence = u, u, u, u, u, u
}

// keep takes everything computed from the state.
func (m *model) keep(state model) {
	m.ID, m.Status, m.Created = state.ID, state.Status, state.Created
	m.Deadline, m.Isolation, m.Evidence = state.Deadline, state.Isolation, state.Evidence
}
