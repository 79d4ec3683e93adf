package backend

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
)

type dataSource struct{ site *site.Site }

var _ datasource.DataSourceWithConfigure = (*dataSource)(nil)

// NewDataSource makes sandboxio_backend.
func NewDataSource() datasource.DataSource { return &dataSource{} }

func (d *dataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_backend"
}

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.site = site.Of(req.ProviderData, &resp.Diagnostics)
}

func (d *dataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a configured backend can do, and where it ends. Nothing is asked of the backend itself, so it need not be running.",
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the backend's name."},
			"name": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Name of a configured backend. Default: the provider's `default_backend`."},
			"capabilities": schema.SetAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Computed: what it declares, as `detach`, `egress.host`, `schedule`. What it does not declare it refuses.",
			},
			"isolation":     schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the weakest isolation a sandbox can turn out to have: `unverified`, `container`, `user-kernel` or `microvm`."},
			"default_image": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the image that a template without one means; null when there is none."},
			"simulated":     schema.BoolAttribute{Computed: true, MarkdownDescription: "Computed: it is a fake, for trying things out, and proves nothing."},
			"limits": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "Computed: what holds for every sandbox.",
				Attributes: map[string]schema.Attribute{
					"default_lifetime": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the lifetime of a template that names none."},
					"max_lifetime":     schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the longest lifetime there is."},
					"default_timeout":  schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the timeout of a command that names none."},
					"cpu_millis":       schema.Int64Attribute{Computed: true, MarkdownDescription: "Computed: the default cap, in thousandths of a core."},
					"memory_mib":       schema.Int64Attribute{Computed: true, MarkdownDescription: "Computed: the default cap of memory."},
					"disk_mib":         schema.Int64Attribute{Computed: true, MarkdownDescription: "Computed: the default cap of writable space."},
					"pids":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Computed: the default cap of processes and threads."},
				},
			},
		},
	}
}

func (d *dataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	b, err := d.site.Open(ctx, m.Name.ValueString())
	if err != nil {
		judge.Report{Diags: &resp.Diagnostics, Places: judge.Places{Else: path.Root("name")}}.Error("Unknown backend", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, flatten(b.Info()))...)
}
