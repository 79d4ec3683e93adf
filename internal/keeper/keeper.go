// Package keeper carries out a reaper schedule: it sweeps one backend when the
// schedule says so, for as long as its context lasts.
//
// It is stateless: everything it needs is in the schedule and in what the
// backend lists, so that it can be killed and started again at any moment. It
// kills only what its schedule names, creates nothing, and listens on nothing.
package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// sweepTimeout bounds one sweep, so that a hung backend does not stop the
// following ones.
const sweepTimeout = 2 * time.Minute

// Validate refuses a schedule that cannot be carried out. Code: invalid.
func Validate(s driver.Schedule) error {
	_, err := times(s)
	return err
}

// fiveFields takes no words like @every, which the field's other tools do not
// know.
var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// times gives the schedule's clock. What makes a schedule valid is for package
// driver to say; of an expression, cron's own parser knows best what is wrong.
func times(s driver.Schedule) (cron.Schedule, error) {
	var clock cron.Schedule = every(s.Interval)
	if s.Cron != "" {
		c, err := fiveFields.Parse("CRON_TZ=UTC " + s.Cron)
		if err != nil {
			return nil, driver.Invalid("cron", fmt.Sprintf("%q: %v", s.Cron, err), `write five fields, as "*/5 * * * *" (UTC)`)
		}
		clock = c
	}
	return clock, s.Validate()
}

type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Add(time.Duration(e)) }

// Selector is which sandboxes a schedule sweeps: those with its labels, or,
// without any, those whose template names it.
func Selector(s driver.Schedule) map[string]string {
	if len(s.Labels) > 0 {
		return s.Labels
	}
	return map[string]string{driver.LabelReaper: s.Name}
}

// Run sweeps b by s, once at the start, until ctx ends. A sweep that fails is
// logged, and the next one tries again. Run returns nil when ctx ended.
func Run(ctx context.Context, b driver.Backend, s driver.Schedule, log *slog.Logger) error {
	clock, err := times(s)
	if err != nil {
		return err
	}
	log = log.With("schedule", s.Name, "backend", b.Info().Name)
	log.InfoContext(ctx, "keeper started", "interval", s.Interval.String(), "cron", s.Cron, "max_age", s.MaxAge.String(), "dry_run", s.DryRun, "labels", Selector(s))
	for ctx.Err() == nil {
		sweep(ctx, b, s, log)
		timer := time.NewTimer(time.Until(clock.Next(time.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	log.InfoContext(context.WithoutCancel(ctx), "keeper stopped")
	return nil
}

func sweep(ctx context.Context, b driver.Backend, s driver.Schedule, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	rep, err := reap.Sweep(ctx, b, reap.Options{Labels: Selector(s), MaxAge: s.MaxAge, Kill: !s.DryRun})
	for _, it := range rep.Items {
		log.InfoContext(ctx, "sandbox is due", "sandbox", it.ID, "name", it.Name, "state", it.State, "reason", it.Reason, "removed", it.Removed)
	}
	if err != nil && ctx.Err() == nil {
		log.ErrorContext(ctx, "sweep failed", "error", err.Error())
		return
	}
	log.DebugContext(ctx, "swept", "seen", rep.Seen, "due", len(rep.Items), "removed", rep.Removed())
}
