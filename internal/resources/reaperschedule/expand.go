package reaperschedule

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// expand reads the schedule. What is not known yet stays zero and is named in
// unknown, in the policy's words.
func (m model) expand() (s driver.Schedule, unknown []string, err error) {
	s.Name, s.Cron, s.DryRun = m.Name.ValueString(), m.Cron.ValueString(), m.DryRun.ValueBool()
	var errs []error
	s.Interval, err = duration.Parse("interval", m.Interval)
	errs = append(errs, err)
	s.MaxAge, err = duration.Parse("max_age", m.MaxAge)
	errs = append(errs, err)
	for _, f := range []struct {
		at      string
		unknown bool
	}{
		{"backend", m.Backend.IsUnknown()},
		{"schedule.interval_seconds", m.Interval.IsUnknown()},
		{"schedule.cron", m.Cron.IsUnknown()},
		{"schedule.max_age_seconds", m.MaxAge.IsUnknown()},
		{"schedule.dry_run", m.DryRun.IsUnknown()},
		{"labels", m.Labels.IsUnknown()},
	} {
		if f.unknown {
			unknown = append(unknown, f.at)
		}
	}
	elements := m.Labels.Elements()
	for _, k := range slices.Sorted(maps.Keys(elements)) {
		v, ok := elements[k].(types.String)
		if !ok || v.IsUnknown() {
			unknown = append(unknown, fmt.Sprintf("labels[%q]", k))
			continue
		}
		if s.Labels == nil {
			s.Labels = make(map[string]string, len(elements))
		}
		s.Labels[k] = v.ValueString()
	}
	return s, unknown, driver.Join(errs...)
}
