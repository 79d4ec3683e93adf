package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// schedule sweeps its world on its interval until it is stopped.
type schedule struct {
	driver.Schedule
	world  *World
	cancel context.CancelFunc
	done   chan struct{}
}

func (w *World) schedule(s driver.Schedule) *schedule {
	ctx, cancel := context.WithCancel(context.Background())
	out := &schedule{Schedule: s, world: w, cancel: cancel, done: make(chan struct{})}
	go out.run(ctx)
	return out
}

func (s *schedule) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep()
		case <-ctx.Done():
			return
		}
	}
}

// sweep ends what is past its deadline, or older than the schedule allows.
func (s *schedule) sweep() {
	now := time.Now()
	for _, b := range s.world.snapshot() {
		covered := b.spec.Facts.Reaper == s.Name
		if len(s.Labels) > 0 {
			covered = driver.HasLabels(b.native(), s.Labels)
		}
		overdue := now.After(b.status().Deadline) || s.MaxAge > 0 && now.Sub(b.created) > s.MaxAge
		if covered && overdue && !s.DryRun {
			b.end()
		}
	}
}

func (s *schedule) stop() {
	s.cancel()
	<-s.done
}

func (s *schedule) status() driver.ScheduleStatus {
	return driver.ScheduleStatus{Schedule: s.Schedule, ID: "memory-" + s.Name, Running: true, Image: image}
}

func (b *backend) PutSchedule(ctx context.Context, s driver.Schedule) (driver.ScheduleStatus, error) {
	if err := b.ready(ctx, "put schedule"); err != nil {
		return driver.ScheduleStatus{}, err
	}
	err := s.Validate()
	if err == nil && s.Cron != "" {
		err = driver.Unsupported("cron", "the memory backend sweeps by interval only", `set interval, as "1m"`)
	}
	if err != nil {
		return driver.ScheduleStatus{}, signed(err, "put schedule", "")
	}
	w := b.world
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return driver.ScheduleStatus{}, signed(&driver.Error{Code: driver.CodeUnavailable, Hint: "open another world"}, "put schedule", "")
	}
	old := w.schedules[s.Name]
	made := w.schedule(s) //nolint:contextcheck // it outlives the call that made it; its world ends it
	w.schedules[s.Name] = made
	w.mu.Unlock()
	if old != nil {
		old.stop()
	}
	return made.status(), nil
}

func (b *backend) Schedule(ctx context.Context, name string) (driver.ScheduleStatus, error) {
	if err := b.ready(ctx, "schedule"); err != nil {
		return driver.ScheduleStatus{}, err
	}
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	s, ok := b.world.schedules[name]
	if !ok {
		return driver.ScheduleStatus{}, signed(&driver.Error{Code: driver.CodeNotFound, Err: fmt.Errorf("there is no schedule %q", name)}, "schedule", "")
	}
	return s.status(), nil
}

func (b *backend) DeleteSchedule(ctx context.Context, name string) error {
	if err := b.ready(ctx, "delete schedule"); err != nil {
		return err
	}
	b.world.mu.Lock()
	s := b.world.schedules[name]
	delete(b.world.schedules, name)
	b.world.mu.Unlock()
	if s != nil {
		s.stop()
	}
	return nil
}
