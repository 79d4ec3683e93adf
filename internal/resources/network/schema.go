package network

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Attributes are what a network policy is written with. Nothing here opens
// anything by being left out. Ports, modes, hosts and ranges have no validators:
// Expand refuses them, in validate and in plan, each with its fix.
func Attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"egress": schema.ListNestedAttribute{
			Optional: true, Computed: true,
			Default: listdefault.StaticValue(types.ListValueMust(RuleType, []attr.Value{})),
			MarkdownDescription: "What may be reached, over TCP. Default: `[]`, nothing at all, name resolution included. " +
				"The order has no meaning. Each rule has exactly one of `host` and `cidr`. Terraform drops other names without a word, as `port`, so that the rule " +
				"means the default ports: read `canonical` in the plan, or have `sandboxio policy check` deny them.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"host": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "A host name: `api.example.com` is that name alone, `*.example.com` its subdomains only. " +
						"Case and a final dot have no meaning; names in other scripts become A-labels. Addresses go into `cidr`. Default: none.",
				},
				"cidr": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "An address range as `203.0.113.0/24` or `2001:db8::/32`; a bare address is that address alone. " +
						"Metadata, link-local, loopback and private ranges are opened only by a rule that names them, and are a policy finding even then. Default: none.",
				},
				"ports": schema.SetAttribute{
					Optional: true, ElementType: types.Int64Type,
					MarkdownDescription: "Ports, each from 1 to 65535. Default: 80 and 443.",
				},
				"why": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "The reason, for whoever reviews the rule. Default: none.",
				},
			}},
		},
		"expose": schema.SetAttribute{
			Optional: true, Computed: true, ElementType: types.Int64Type,
			Default:             setdefault.StaticValue(types.SetValueMust(types.Int64Type, []attr.Value{})),
			MarkdownDescription: "Ports, each from 1 to 65535, that authenticated callers reach from outside. Default: `[]`, none. A backend that cannot authenticate them refuses.",
		},
		"mode": schema.StringAttribute{
			Optional: true, Computed: true,
			Default: stringdefault.StaticString("transparent"),
			MarkdownDescription: "How an allowlist is enforced. `transparent` needs nothing of the program; `proxy` lets only proxy-aware programs out " +
				"and is refused for detached sandboxes. Default: `transparent`. It means nothing without `egress`.",
		},
		"learn": schema.BoolAttribute{
			Optional: true, Computed: true,
			Default:             booldefault.StaticBool(false),
			MarkdownDescription: "Record what was attempted, while denying it all the same. Default: `false`.",
		},
	}
}
