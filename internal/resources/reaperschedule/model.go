package reaperschedule

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
)

type model struct {
	ID       types.String   `tfsdk:"id"`
	Name     types.String   `tfsdk:"name"`
	Backend  types.String   `tfsdk:"backend"`
	Interval types.String   `tfsdk:"interval"`
	Cron     types.String   `tfsdk:"cron"`
	Labels   types.Map      `tfsdk:"labels"`
	MaxAge   types.String   `tfsdk:"max_age"`
	DryRun   types.Bool     `tfsdk:"dry_run"`
	Running  types.Bool     `tfsdk:"running"`
	Image    types.String   `tfsdk:"image"`
	KeeperID types.String   `tfsdk:"keeper_id"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

var places = judge.Same("name", "backend", "interval", "cron", "labels", "max_age", "dry_run").
	With("schedule", path.Empty()).
	With("schedule.interval_seconds", path.Root("interval")).
	With("schedule.max_age_seconds", path.Root("max_age"))
