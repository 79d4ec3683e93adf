package reaperschedule

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/patience"
)

func (r *scheduleResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A schedule on which the backend itself removes sandboxes that should not be there any more: past their deadline, created but never started, " +
			"ended but not removed, or older than `max_age`. It goes on without Terraform and without any program that made them. " +
			"A backend that cannot keep schedules refuses it in the plan.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Computed: `<backend>/<name>`, the import id.",
			},
			"name": naming.Fixed(),
			"backend": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "The backend to sweep. Default: the provider's `default_backend`. A change forces replacement.",
			},
			"interval": schema.StringAttribute{
				Optional: true,
				Validators: []validator.String{
					duration.Between(time.Second, 0),
					stringvalidator.ExactlyOneOf(path.MatchRoot("interval"), path.MatchRoot("cron")),
				},
				PlanModifiers:       []planmodifier.String{duration.SameIsNoChange()},
				MarkdownDescription: "Time between sweeps, as `30s` or `5m`, at least `1s`. Default: none; exactly one of `interval` and `cron` is required.",
			},
			"cron": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "When to sweep, as five cron fields in UTC. Default: none; exactly one of `interval` and `cron` is required.",
			},
			"labels": schema.MapAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Default:             mapdefault.StaticValue(types.MapValueMust(types.StringType, map[string]attr.Value{})),
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
				MarkdownDescription: "Sweep the sandboxes that have all of these labels. Default: `{}`, those whose template names this schedule as `reaper`.",
			},
			"max_age": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{duration.Between(time.Second, 0)},
				PlanModifiers:       []planmodifier.String{duration.SameIsNoChange()},
				MarkdownDescription: "Remove what is older than this, whatever its deadline, as `1h`. Default: none, deadlines only.",
			},
			"dry_run": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Report what would be removed, and remove nothing. Default: `false`.",
			},
			"running":   schema.BoolAttribute{Computed: true, MarkdownDescription: "Computed: whether it runs. One that does not is repaired by the next apply."},
			"image":     schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: what the backend runs for it."},
			"keeper_id": schema.StringAttribute{Computed: true, MarkdownDescription: "Computed: its id at the backend. It changes when the schedule does."},
			"timeouts":  patience.Attribute(ctx),
		},
	}
}

func (r *scheduleResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "<backend>/<name>"},
	}}
}
