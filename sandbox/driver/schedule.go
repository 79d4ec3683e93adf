package driver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate refuses a schedule that no backend could keep. All problems are
// joined, each with its Field; code: invalid.
func (s Schedule) Validate() error {
	var errs []error
	if !labelKey(s.Name) {
		errs = append(errs, Invalid("name", fmt.Sprintf("%q is no name for a schedule", s.Name), "use 1 to 63 letters, digits, '.', '_', '-'"))
	}
	switch {
	case (s.Interval != 0) == (s.Cron != ""):
		errs = append(errs, Invalid("interval", "a schedule has exactly one of interval and cron", `set interval = "60s", or cron = "*/5 * * * *"`))
	case s.Cron != "":
		if problem := badCron(s.Cron); problem != "" {
			errs = append(errs, Invalid("cron", fmt.Sprintf("%q %s", s.Cron, problem), `write minute, hour, day, month and weekday in UTC, as "*/5 * * * *"`))
		}
	case s.Interval < time.Second:
		errs = append(errs, Invalid("interval", fmt.Sprintf("%v is below 1s", s.Interval), `set at least interval = "1s"`))
	}
	if s.MaxAge < 0 {
		errs = append(errs, Invalid("max_age", fmt.Sprintf("%v is negative", s.MaxAge), "set a positive age, or none for deadlines only"))
	}
	return Join(errs...)
}

var cronFields = []struct {
	name     string
	min, max int
	words    []string // for min and what follows
}{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"weekday", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// badCron says what is wrong with a cron expression: each of five fields is a
// list of "*", numbers and ranges, each with an optional step.
func badCron(s string) string {
	fields := strings.Fields(s)
	if len(fields) != len(cronFields) {
		return fmt.Sprintf("has %d fields, not 5", len(fields))
	}
	for i, f := range cronFields {
		value := func(text string) (int, bool) {
			if n := slices.Index(f.words, strings.ToLower(text)); n >= 0 {
				return f.min + n, true
			}
			n, err := strconv.ParseUint(text, 10, 16)
			return int(n), err == nil && f.min <= int(n) && int(n) <= f.max
		}
		for part := range strings.SplitSeq(fields[i], ",") {
			span, step, stepped := strings.Cut(part, "/")
			if n, err := strconv.ParseUint(step, 10, 16); stepped && (err != nil || n == 0) {
				return fmt.Sprintf("has the step %q in its %s", step, f.name)
			}
			if span == "*" {
				continue
			}
			first, last, ranged := strings.Cut(span, "-")
			from, ok := value(first)
			to := from
			if ok && ranged {
				to, ok = value(last)
			}
			if !ok || to < from {
				return fmt.Sprintf("has %q as its %s", part, f.name)
			}
		}
	}
	return ""
}
