package policyfindings

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/template"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

type dataSource struct{ site *site.Site }

var _ datasource.DataSourceWithConfigure = (*dataSource)(nil)

// NewDataSource makes sandboxio_policy_findings.
func NewDataSource() datasource.DataSource { return &dataSource{} }

type model struct {
	Manifest types.String `tfsdk:"manifest"`
	Backend  types.String `tfsdk:"backend"`
	Decision types.String `tfsdk:"decision"`
	Policy   types.String `tfsdk:"policy"`
	Rules    types.List   `tfsdk:"rules"`
	Findings types.List   `tfsdk:"findings"`
}

func (d *dataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_policy_findings"
}

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.site = site.Of(req.ProviderData, &resp.Diagnostics)
}

func (d *dataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	computed := func(text string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: " + text}
	}
	finding := map[string]schema.Attribute{
		"waiver": schema.SingleNestedAttribute{
			Computed: true, MarkdownDescription: "Computed: what excuses it; null unless the effect is `waived`.",
			Attributes: map[string]schema.Attribute{
				"id": computed("The waiver's id."), "owner": computed("Who answers for it."), "reason": computed("Why."),
				"expires": computed("When the finding counts again, as RFC 3339."),
			},
		},
	}
	for _, w := range words {
		finding[w.name] = computed(w.text)
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What the policy of this provider says of a template's manifest: its rules, parameters, waivers and floor, on the backend that is " +
			"asked for. It refuses nothing: put the `decision` into a `check` or a `postcondition`. Nothing is asked of the backend itself.",
		Attributes: map[string]schema.Attribute{
			"manifest": schema.StringAttribute{Required: true, MarkdownDescription: "Required. The manifest of a template, as `sandboxio_template` has it or written by hand."},
			"backend":  schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "The backend it is judged for. Default: the manifest's own, then the provider's `default_backend`."},
			"decision": computed("`error`, `deny`, `unknown`, `warn` or `allow`."),
			"policy":   computed("The digest of everything that judged, as manifests name it."),
			"rules":    schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Computed: the ids of all rules that ran."},
			"findings": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "Computed: what they found, worst first.",
				NestedObject: schema.NestedAttributeObject{Attributes: finding},
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
	refuse := func(at, summary string, err error) {
		judge.Report{Diags: &resp.Diagnostics, Places: judge.Places{Else: path.Root(at)}}.Error(summary, err)
	}
	t, err := sandbox.ParseTemplate([]byte(m.Manifest.ValueString()))
	if err != nil {
		refuse("manifest", "Not a manifest", err)
		return
	}
	b, err := d.site.Open(ctx, cmp.Or(m.Backend.ValueString(), t.Backend))
	if err != nil {
		refuse("backend", "Unknown backend", err)
		return
	}
	enforced, err := template.Check(ctx, b, *t)
	if err != nil {
		refuse("manifest", "The backend cannot enforce this", err)
		return
	}
	v, err := d.site.Policy().Judge(ctx, policy.Input{
		Kind: policy.KindTemplate, Stage: policy.StagePlan, Name: t.Name, Resource: policy.FromSpec(b.Info(), wish.Order(*t, b.Info()), enforced, t.Secrets),
	})
	if err != nil {
		refuse("manifest", "The policy could not judge", err)
		return
	}
	m.Backend, m.Decision, m.Policy = types.StringValue(b.Info().Name), types.StringValue(string(v.Decision)), types.StringValue(v.Policy)
	rules := make([]attr.Value, len(v.Rules))
	for i, id := range v.Rules {
		rules[i] = types.StringValue(id)
	}
	m.Rules = types.ListValueMust(types.StringType, rules)
	of := findingTypes()
	of["waiver"] = types.ObjectType{AttrTypes: waiverTypes}
	findings := make([]attr.Value, len(v.Findings))
	for i, f := range v.Findings {
		value := flattenFinding(f)
		value["waiver"] = flattenWaiver(f.Waiver)
		findings[i] = types.ObjectValueMust(of, value)
	}
	m.Findings = types.ListValueMust(types.ObjectType{AttrTypes: of}, findings)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
