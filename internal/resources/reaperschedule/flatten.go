package reaperschedule

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// flatten writes what the backend runs into m, keeping m's spelling of equal
// durations.
func (m *model) flatten(backend string, st driver.ScheduleStatus) {
	m.ID = types.StringValue(naming.Join(backend, st.Name))
	m.Name, m.Backend = types.StringValue(st.Name), types.StringValue(backend)
	m.Interval, m.MaxAge = length(m.Interval, st.Interval), length(m.MaxAge, st.MaxAge)
	m.Cron, m.Image, m.KeeperID = text(st.Cron), text(st.Image), text(st.ID)
	labels := make(map[string]attr.Value, len(st.Labels))
	for k, v := range st.Labels {
		labels[k] = types.StringValue(v)
	}
	m.Labels = types.MapValueMust(types.StringType, labels)
	m.DryRun, m.Running = types.BoolValue(st.DryRun), types.BoolValue(st.Running)
}

func length(written types.String, d time.Duration) types.String {
	if d == 0 {
		return types.StringNull()
	}
	if old, err := duration.Parse("", written); err == nil && old == d {
		return written
	}
	return types.StringValue(duration.Format(d))
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
