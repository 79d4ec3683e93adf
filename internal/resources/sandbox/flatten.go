package sandbox

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// flatten writes what the backend says now. Isolation was measured when the
// sandbox was made and is kept.
func (m *model) flatten(st driver.Status) {
	m.ID, m.Status = types.StringValue(st.ID), types.StringValue(string(st.State))
	m.Created, m.Deadline = stamp(st.Created), stamp(st.Deadline)
}

// measure writes the measured isolation.
func (m *model) measure(st driver.Status) {
	m.Isolation = types.StringValue(st.Isolation.String())
	e := st.Evidence.Source
	if st.Evidence.Detail != "" {
		e += ": " + st.Evidence.Detail
	}
	m.Evidence = types.StringValue(e)
}

func stamp(t time.Time) types.String { return types.StringValue(t.UTC().Format(time.RFC3339)) }
