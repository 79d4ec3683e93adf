package networkpolicy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
)

func (r *policyResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := network.Attributes()
	attributes["id"] = schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the digest. It changes with the content."}
	attributes["name"] = naming.Attribute()
	attributes["canonical"] = schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "Computed: the policy in its one form, for a template's `network_policy`. Rules are sorted and merged, names lower case and in ASCII, ranges masked, ports written out.",
		Attributes: map[string]schema.Attribute{
			"egress": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "Computed: the rules, sorted.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"host":  schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the name, lower case and in ASCII."},
					"cidr":  schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the range, masked."},
					"ports": schema.SetAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: "Computed: the ports, written out."},
					"why":   schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the reasons, merged."},
				}},
			},
			"expose": schema.SetAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: "Computed: the exposed ports."},
			"mode":   schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: `transparent` or `proxy`."},
			"learn":  schema.BoolAttribute{Computed: true, MarkdownDescription: "Computed: whether attempts are recorded."},
		},
	}
	attributes["mechanisms"] = schema.MapAttribute{
		Computed: true, ElementType: byRule,
		MarkdownDescription: "Computed: by backend and canonical rule, how the rule is enforced: `ip-set` and `dns+sni+ip` by a gateway, `proxy` by the owner's process, " +
			"`provider:…` by the backend's provider, `simulated` by nothing real, `none` where that backend refuses it. A rule that every configured backend refuses is an error in the plan.",
	}
	attributes["digest"] = schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: identifies the canonical form, as `sha256:…`."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What sandboxes may reach: an allowlist, empty unless written. It is a value; templates take its `canonical` form. " +
			"The policy judges it in the plan and again before creation.",
		Attributes: attributes,
	}
}

func (r *policyResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "The policy as one JSON object."},
	}}
}
