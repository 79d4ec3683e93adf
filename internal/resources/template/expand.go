package template

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// expanded is a model in the words of package sandbox.
type expanded struct {
	template sandbox.Template // what is unknown stays zero; rules in the order written
	unknown  []string         // paths of what is not known yet, in the policy's words
	err      error            // what cannot be read, joined
}

// known reports whether the manifest can be written.
func (e expanded) known() bool { return len(e.unknown) == 0 && e.err == nil }

func (m model) expand(ctx context.Context) (expanded, diag.Diagnostics) {
	var (
		e     expanded
		errs  []error
		diags diag.Diagnostics
	)
	text := func(field string, v types.String) string {
		if v.IsUnknown() {
			e.unknown = append(e.unknown, field)
		}
		return v.ValueString()
	}
	t := &e.template
	t.Name = m.Name.ValueString() // no rule reads it
	t.Backend = text("backend", m.Backend)
	t.Image = text("image", m.Image)
	t.Reaper = text("reaper", m.Reaper)
	text("lifetime_seconds", m.Lifetime)

	var err error
	t.Lifetime, err = duration.Parse("lifetime", m.Lifetime)
	errs = append(errs, err)
	t.Isolation, err = driver.ParseIsolation(text("isolation", m.Isolation))
	errs = append(errs, err)
	t.Profile, err = driver.ParseProfile(text("profile", m.Profile))
	errs = append(errs, err)
	level, reason := text("trust", m.Trust), text("trust_reason", m.TrustReason)
	if !m.Trust.IsUnknown() && !m.TrustReason.IsUnknown() {
		t.Trust, err = driver.ParseTrust(level, reason)
		errs = append(errs, err)
	}
	t.MultiTenant = m.MultiTenant.ValueBool()
	if m.MultiTenant.IsUnknown() {
		e.unknown = append(e.unknown, "multi_tenant")
	}
	diags.Append(e.caps(ctx, m.Resources)...)

	n, nd := network.ExpandObject(ctx, m.NetworkPolicy)
	diags.Append(nd...)
	t.Network, e.unknown = n.Network, append(e.unknown, n.Unknown...)
	errs = append(errs, n.Problems)

	t.Env = e.stringMap("env", m.Env)
	t.Labels = e.stringMap("labels", m.Labels)
	if m.Secrets.IsUnknown() {
		e.unknown = append(e.unknown, "secrets")
	}
	for _, el := range m.Secrets.Elements() {
		if s, ok := el.(types.String); ok && !s.IsUnknown() {
			t.Secrets = append(t.Secrets, s.ValueString())
		} else {
			e.unknown = append(e.unknown, "secrets")
		}
	}
	slices.Sort(t.Secrets)
	e.unknown = slices.Compact(e.unknown)
	e.err = driver.Join(errs...)
	return e, diags
}

func (e *expanded) caps(ctx context.Context, o types.Object) diag.Diagnostics {
	if o.IsUnknown() {
		e.unknown = append(e.unknown, "resources")
		return nil
	}
	var c caps
	if !o.IsNull() {
		if diags := o.As(ctx, &c, basetypes.ObjectAsOptions{}); diags.HasError() {
			return diags
		}
	}
	for _, f := range []struct {
		name string
		from types.Int64
		to   *int64
	}{
		{"cpu_millis", c.CPUMillis, &e.template.Resources.CPUMillis},
		{"memory_mib", c.MemoryMiB, &e.template.Resources.MemoryMiB},
		{"disk_mib", c.DiskMiB, &e.template.Resources.DiskMiB},
		{"pids", c.PIDs, &e.template.Resources.PIDs},
	} {
		*f.to = f.from.ValueInt64()
		if f.from.IsUnknown() {
			e.unknown = append(e.unknown, "resources."+f.name)
		}
	}
	return nil
}

// stringMap reads what is known of a map.
func (e *expanded) stringMap(field string, m types.Map) map[string]string {
	if m.IsUnknown() {
		e.unknown = append(e.unknown, field)
		return nil
	}
	elements := m.Elements()
	out := make(map[string]string, len(elements))
	for _, k := range slices.Sorted(maps.Keys(elements)) {
		out[k] = e.element(fmt.Sprintf("%s[%q]", field, k), elements[k])
	}
	return out
}

func (e *expanded) element(at string, v attr.Value) string {
	s, ok := v.(types.String)
	if !ok || s.IsUnknown() {
		e.unknown = append(e.unknown, at)
		return ""
	}
	return s.ValueString()
}
