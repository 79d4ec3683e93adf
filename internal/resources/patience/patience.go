// Package patience is the timeouts attribute of resources that wait for a
// provider.
package patience

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// How long is waited when the attribute says nothing.
const (
	Create = 5 * time.Minute
	Read   = time.Minute
	Update = 5 * time.Minute
	Delete = 2 * time.Minute
)

// Attribute is timeouts, with descriptions.
func Attribute(ctx context.Context) schema.Attribute {
	a, ok := timeouts.AttributesAll(ctx).(schema.SingleNestedAttribute)
	if !ok {
		panic("the timeouts attribute is not a nested one") // held by the test of the schema
	}
	a.MarkdownDescription = "How long to wait for the backend. Default: each its own."
	described := maps.Clone(a.Attributes)
	for name, d := range map[string]string{
		"create": "A duration such as `30s`. Default: `5m`.", "read": "A duration such as `30s`. Default: `1m`.",
		"update": "A duration such as `30s`. Default: `5m`.", "delete": "A duration such as `30s`. Default: `2m`.",
	} {
		if s, ok := described[name].(schema.StringAttribute); ok {
			s.Description, s.MarkdownDescription = "", d
			described[name] = s
		}
	}
	a.Attributes = described
	return a
}

// Limit bounds ctx by what one of the attribute's methods says.
func Limit(ctx context.Context, of func(context.Context, time.Duration) (time.Duration, diag.Diagnostics), otherwise time.Duration, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	d, more := of(ctx, otherwise)
	diags.Append(more...)
	return context.WithTimeout(ctx, d)
}

// None is the attribute left out, as after an import.
func None() timeouts.Value {
	of := map[string]attr.Type{"create": types.StringType, "read": types.StringType, "update": types.StringType, "delete": types.StringType}
	return timeouts.Value{Object: types.ObjectNull(of)}
}
