package template

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// defaultCaps are what package driver fills in, asked for and not repeated.
func defaultCaps() caps {
	r, err := driver.Resources{}.Resolve()
	if err != nil {
		panic(err) // the defaults are within the bounds
	}
	return flattenCaps(r)
}

func (r *templateResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	d := defaultCaps()
	limit := func(v types.Int64, text string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, Computed: true, Default: int64default.StaticInt64(v.ValueInt64()),
			Validators:          []validator.Int64{int64validator.AtLeast(1)},
			MarkdownDescription: text + " Default: `" + v.String() + "`. It can be raised, never unset.",
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A reviewed description of sandboxes, closed by default: no network, a read-only root, capped resources, a bounded lifetime. " +
			"It is a value, and nothing is made at a provider. Agent programs load its `manifest`; `sandboxio_sandbox` takes it as `template`. " +
			"The policy judges it in the plan and again before creation.",
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the digest. It changes with the content."},
			"name": naming.Attribute(),
			"backend": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The backend it is reviewed for; other backends refuse the manifest. Default: the provider's `default_backend`.",
			},
			"image": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The image, by digest as `registry/repository@sha256:…`, or an image id `sha256:…` where there is no registry. " +
					"It is never resolved here. Default: the backend's default image.",
			},
			"isolation": schema.StringAttribute{
				Optional:   true,
				Validators: []validator.String{stringvalidator.OneOf("container", "user-kernel", "microvm")},
				MarkdownDescription: "The floor: the least isolation a sandbox must measure. One of `container`, `user-kernel` (gVisor) and `microvm`. " +
					"Default: what `trust` requires.",
			},
			"trust": schema.StringAttribute{
				Optional:   true,
				Validators: []validator.String{stringvalidator.OneOf("untrusted", "trusted")},
				MarkdownDescription: "What is known of the code: `untrusted` has the floor `user-kernel`, with `multi_tenant` `microvm`; `trusted` needs `trust_reason`. " +
					"Default: unstated, which warns on the container tier.",
			},
			"trust_reason": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Who vouches for the code, and why. Required with `trust = \"trusted\"`, refused otherwise. Default: none.",
			},
			"multi_tenant": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Code of several tenants shares the host. Default: `false`.",
			},
			"profile": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(driver.Strict.String()),
				Validators: []validator.String{stringvalidator.OneOf(driver.Strict.String(), driver.Compat.String())},
				MarkdownDescription: "`strict` has a read-only root with capped writable `/work`, `/tmp` and `/run`; `compat` has a writable root. " +
					"Default: `strict`.",
			},
			"lifetime": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(duration.Format(driver.DefaultLifetime)),
				Validators:    []validator.String{duration.Between(time.Second, driver.MaxLifetime)},
				PlanModifiers: []planmodifier.String{duration.SameIsNoChange()},
				MarkdownDescription: "How long a sandbox may live, as `300s` or `1h`, from `1s` to `" + duration.Format(driver.MaxLifetime) + "`. " +
					"Default: `" + duration.Format(driver.DefaultLifetime) + "`. Zero is refused: every sandbox ends.",
			},
			"resources": schema.SingleNestedAttribute{
				Optional: true, Computed: true, Default: objectdefault.StaticValue(d.object()),
				MarkdownDescription: "Caps, which always apply. Default: each its own.",
				Attributes: map[string]schema.Attribute{
					"cpu_millis": limit(d.CPUMillis, "Thousandths of a core."),
					"memory_mib": limit(d.MemoryMiB, "Memory in MiB, without what `disk_mib` adds."),
					"disk_mib":   limit(d.DiskMiB, "Writable space in MiB."),
					"pids":       limit(d.PIDs, "Processes and threads."),
				},
			},
			"network_policy": schema.SingleNestedAttribute{
				Optional: true, Computed: true, Default: objectdefault.StaticValue(network.Deny()),
				MarkdownDescription: "What a sandbox may reach, by value: `sandboxio_network_policy.x.canonical`, or written here. Default: nothing.",
				Attributes:          network.Attributes(),
			},
			"env": schema.MapAttribute{
				Optional: true, Computed: true, ElementType: types.StringType, Default: mapdefault.StaticValue(types.MapValueMust(types.StringType, map[string]attr.Value{})),
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				MarkdownDescription: "Environment variables, in clear in the manifest and in the state, also where a variable is marked sensitive. Never put credentials here: see `secrets`. Default: `{}`.",
			},
			"secrets": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType, Default: setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{})),
				Validators:          []validator.Set{setvalidator.NoNullValues()},
				MarkdownDescription: "Names of secrets that commands may be given when they start. Values are never part of a template. Default: `[]`.",
			},
			"labels": schema.MapAttribute{
				Optional: true, Computed: true, ElementType: types.StringType, Default: mapdefault.StaticValue(types.MapValueMust(types.StringType, map[string]attr.Value{})),
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				MarkdownDescription: "Labels of each sandbox. The prefix `sandboxio.` is reserved. Default: `{}`.",
			},
			"reaper": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Name of the `sandboxio_reaper_schedule` that sweeps its sandboxes, best as a reference: only a review of the whole plan looks up whether there is one of that name. Default: none, which the policy warns of or denies.",
			},
			"manifest": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Computed: the template as canonical JSON with its digest and that of the policy which judged it. Known in the plan as soon as its inputs are. " +
					"Pass it to `sandbox.ParseTemplate`.",
			},
			"digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the manifest's digest, as `sha256:…`."},
		},
	}
}

func (r *templateResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "The manifest."},
	}}
}
