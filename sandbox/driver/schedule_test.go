package driver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestScheduleValidate(t *testing.T) {
	cron := func(s string) driver.Schedule { return driver.Schedule{Name: "n", Cron: s} }
	for _, c := range []struct {
		name   string
		s      driver.Schedule
		fields []string
	}{
		{"an interval", driver.Schedule{Name: "n", Interval: time.Second, MaxAge: time.Hour}, nil},
		{"every five minutes", cron("*/5 * * * *"), nil},
		{"lists, ranges, steps and names", cron("0,30 8-18/2 1 jan-Mar MON,3"), nil},
		{"no name", driver.Schedule{Interval: time.Second}, []string{"name"}},
		{"a name that climbs", driver.Schedule{Name: "../x", Interval: time.Second}, []string{"name"}},
		{"no rhythm", driver.Schedule{Name: "n"}, []string{"interval"}},
		{"two rhythms", driver.Schedule{Name: "n", Interval: time.Second, Cron: "* * * * *"}, []string{"interval"}},
		{"too often", driver.Schedule{Name: "n", Interval: time.Millisecond}, []string{"interval"}},
		{"backwards", driver.Schedule{Name: "n", Interval: -time.Second, MaxAge: -1}, []string{"interval", "max_age"}},
		{"four fields", cron("* * * *"), []string{"cron"}},
		{"seconds", cron("* * * * * *"), []string{"cron"}},
		{"a macro", cron("@hourly"), []string{"cron"}},
		{"a time zone", cron("TZ=UTC * * * * *"), []string{"cron"}},
		{"minute 60", cron("60 * * * *"), []string{"cron"}},
		{"day 0", cron("* * 0 * *"), []string{"cron"}},
		{"a range backwards", cron("5-1 * * * *"), []string{"cron"}},
		{"an open range", cron("5- * * * *"), []string{"cron"}},
		{"step 0", cron("*/0 * * * *"), []string{"cron"}},
		{"an empty part", cron("1,,2 * * * *"), []string{"cron"}},
		{"a sign", cron("+1 * * * *"), []string{"cron"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.s.Validate()
			if diff := cmp.Diff(c.fields, fields(err)); diff != "" || err != nil && !errors.Is(err, driver.CodeInvalid) {
				t.Error(err, diff)
			}
		})
	}
}
