package keeper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/keeper"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		s     driver.Schedule
		field string
	}{
		{"an interval", driver.Schedule{Name: "a", Interval: time.Second}, ""},
		{"a cron expression", driver.Schedule{Name: "a", Cron: "*/5 * * * *"}, ""},
		{"no name", driver.Schedule{Interval: time.Second}, "name"},
		{"neither", driver.Schedule{Name: "a"}, "interval"},
		{"both", driver.Schedule{Name: "a", Interval: time.Second, Cron: "* * * * *"}, "interval"},
		{"too often", driver.Schedule{Name: "a", Interval: time.Second - 1}, "interval"},
		{"backwards", driver.Schedule{Name: "a", Interval: -time.Hour}, "interval"},
		{"a malformed expression", driver.Schedule{Name: "a", Cron: "often"}, "cron"},
		{"six fields", driver.Schedule{Name: "a", Cron: "* * * * * *"}, "cron"},
		{"a word instead of fields", driver.Schedule{Name: "a", Cron: "@every 1s"}, "cron"},
		{"a zone of its own", driver.Schedule{Name: "a", Cron: "TZ=Mars/Base * * * * *"}, "cron"},
		{"a negative age", driver.Schedule{Name: "a", Interval: time.Second, MaxAge: -1}, "max_age"},
	} {
		err := keeper.Validate(c.s)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if p := driver.Problems(err); len(p) != 1 || p[0].Field != c.field || p[0].Hint == "" {
			t.Errorf("%s: got %v, want field %q", c.name, err, c.field)
		}
	}
}

func TestKeeperRemovesFrozenSandboxesOnScheduleAndOnlyItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := memory.NewWorld()
		b := memory.Open(memory.Options{World: w})
		create := func(reaper string, lifetime time.Duration) string {
			rt := sandbox.New(b, sandbox.Options{Unguarded: "a test"})
			sb, err := rt.Create(t.Context(), sandbox.Spec{Template: &sandbox.Template{Name: "x", Reaper: reaper}, Lifetime: lifetime, Detached: true})
			if err != nil {
				t.Fatal(err)
			}
			if !w.Freeze(sb.ID()) { // now its own deadline cannot fire
				t.Fatal("not frozen")
			}
			return sb.ID()
		}
		due, other, young := create("mine", 3*time.Second), create("theirs", 3*time.Second), create("mine", 4*time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		done := make(chan error, 1)
		go func() {
			done <- keeper.Run(ctx, b, driver.Schedule{Name: "mine", Interval: 5 * time.Second}, slog.New(slog.NewJSONHandler(&log, nil)))
		}()
		time.Sleep(7 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for id, want := range map[string]bool{due: false, other: true, young: true} {
			_, err := b.Attach(t.Context(), id)
			if there := err == nil; there != want {
				t.Errorf("%s is there: %v, want %v (%v)", id, there, want, err)
			}
		}
		if !strings.Contains(log.String(), due) || strings.Contains(log.String(), other) {
			t.Errorf("log: %s", log.String())
		}
		if err := errors.Join(b.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	})
}
