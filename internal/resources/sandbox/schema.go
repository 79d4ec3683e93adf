package sandbox

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/patience"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (r *sandboxResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	noNulls := []validator.Map{mapvalidator.NoNullValues()}
	empty := mapdefault.StaticValue(types.MapValueMust(types.StringType, map[string]attr.Value{}))
	resp.Schema = schema.Schema{
		MarkdownDescription: "One detached sandbox made from a template, living to its deadline. It is judged in the plan and again before it is created. " +
			"An expired one stays in the state with `status = \"expired\"` and an empty plan. For sandboxes of single runs use the Go package; " +
			"what runs for minutes is no infrastructure.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the sandbox's id at the backend, which `sandbox.Attach` takes."},
			"backend": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The backend that runs it. Default: the provider's `default_backend`. A change forces replacement.",
			},
			"template": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The template's `manifest`. Required. A change of what it says forces replacement; the same template judged by another policy does not. " +
					"After an import it is the manifest's digest, which is all that the backend knows.",
			},
			"lifetime": schema.StringAttribute{
				Required:      true,
				Validators:    []validator.String{duration.Between(time.Second, driver.MaxLifetime)},
				PlanModifiers: []planmodifier.String{duration.SameIsNoChange()},
				MarkdownDescription: "How long it lives, as `300s` or `1h`, from `1s` to the template's lifetime. Required: every sandbox ends. " +
					"A change forces replacement.",
			},
			"env": schema.MapAttribute{
				Optional: true, Computed: true, ElementType: types.StringType, Default: empty, Validators: noNulls,
				MarkdownDescription: "Environment variables, added to the template's. They are in the state: never put credentials here. Default: `{}`. A change forces replacement.",
			},
			"labels": schema.MapAttribute{
				Optional: true, Computed: true, ElementType: types.StringType, Default: empty, Validators: noNulls,
				MarkdownDescription: "Labels, added to the template's. The prefix `sandboxio.` is reserved. Default: `{}`. A change forces replacement.",
			},
			"start": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A command to start in it. Its output is dropped and its end is not waited for. Default: none. A change forces replacement.",
				Attributes: map[string]schema.Attribute{
					"command": schema.ListAttribute{
						Required: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.NoNullValues()},
						MarkdownDescription: "The program and its arguments. No shell reads them, unless they say `[\"sh\", \"-c\", …]`. Required. A change forces replacement.",
					},
					"env": schema.MapAttribute{
						Optional: true, ElementType: types.StringType, Validators: noNulls,
						MarkdownDescription: "Environment variables of this command, winning over the sandbox's. Default: none. A change forces replacement.",
					},
					"dir": schema.StringAttribute{Optional: true, MarkdownDescription: "Working directory, absolute or relative to `/work`. Default: `/work`. A change forces replacement."},
					"timeout": schema.StringAttribute{
						Optional: true, Validators: []validator.String{duration.Between(time.Second, driver.MaxLifetime)},
						MarkdownDescription: "When the command is ended, as `30m`. Default: `" + duration.Format(driver.DefaultTimeout) + "`. Zero is refused. A change forces replacement.",
					},
					"secrets_wo": schema.MapAttribute{
						Optional: true, WriteOnly: true, ElementType: types.StringType, Validators: noNulls,
						MarkdownDescription: "Secret variables of this command: names that the template's `secrets` declares, and values, best from an `ephemeral = true` variable. " +
							"Needs Terraform 1.11 or later. They reach the command over the sandbox's own channel and are kept nowhere. Default: none. A change alone is not seen: raise `secrets_wo_version`.",
					},
					"secrets_wo_version": schema.Int64Attribute{
						Optional:            true,
						MarkdownDescription: "Any number; change it to hand over `secrets_wo` anew. Default: none. A change forces replacement.",
					},
				},
			},
			"recreate_on_expiry": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Plan a new one once it has expired. Default: `false`.",
			},
			"status":    schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: `running`, `paused`, `exited`, `created`, `removing`, or `expired` after its deadline."},
			"created":   schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: when it was made, in UTC."},
			"deadline":  schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: when it ends by itself, in UTC."},
			"isolation": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: the isolation that was measured: `unverified`, `container`, `user-kernel` or `microvm`."},
			"evidence":  schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: what the measured isolation rests on."},
			"timeouts":  patience.Attribute(ctx),
		},
	}
}

func (r *sandboxResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "<backend>/<id>"},
	}}
}
