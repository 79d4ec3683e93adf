package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/keeper"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// keeperCommand is what the keeper's container runs. Terraform makes that
// container; nobody types this.
func (a *app) keeperCommand() *cobra.Command {
	var schedule string
	c := &cobra.Command{
		Use:    "keeper",
		Short:  "Carry out a reaper schedule (what a sandboxio_reaper_schedule runs)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s driver.Schedule
			if err := json.Unmarshal([]byte(schedule), &s); err != nil {
				return driver.Invalid("schedule", fmt.Sprintf("not a schedule: %v", err), "let sandboxio_reaper_schedule start the keeper")
			}
			return a.keep(cmd.Context(), s)
		},
	}
	a.backendFlag(c)
	c.Flags().StringVar(&schedule, "schedule", "", "the schedule, as JSON")
	return c
}

func (a *app) keep(ctx context.Context, s driver.Schedule) error {
	e, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	b, err := e.Backend(ctx, "")
	if err != nil {
		return err
	}
	return keeper.Run(ctx, b, s, slog.New(slog.NewJSONHandler(a.Out, nil)))
}
