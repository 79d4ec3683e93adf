// Package duration is how resources spell lengths of time: "300s", "5m",
// "1h30m". Zero and negative ones are refused, and two spellings of one length
// are the same value.
package duration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
)

// Parse reads a duration; null and unknown are zero, an explicit zero is
// refused. Code: invalid, with the given field.
func Parse(field string, v types.String) (time.Duration, error) {
	if v.IsNull() || v.IsUnknown() {
		return 0, nil
	}
	return wish.Duration(field, v.ValueString())
}

// Format writes d as briefly as it can be read back: "5m", not "5m0s".
func Format(d time.Duration) string {
	s := d.String()
	if d >= time.Minute && strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if d >= time.Hour && strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Between accepts whole seconds from lowest to highest; a highest of 0 is no
// bound.
func Between(lowest, highest time.Duration) validator.String { return between{lowest, highest} }

type between struct{ lowest, highest time.Duration }

func (b between) Description(context.Context) string {
	if b.highest == 0 {
		return fmt.Sprintf("a duration of at least %s, in whole seconds", Format(b.lowest))
	}
	return fmt.Sprintf("a duration between %s and %s, in whole seconds", Format(b.lowest), Format(b.highest))
}

func (b between) MarkdownDescription(ctx context.Context) string { return b.Description(ctx) }

func (b between) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	s := req.ConfigValue.ValueString()
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		resp.Diagnostics.AddAttributeError(req.Path, "Not a duration",
			fmt.Sprintf("%q is not a duration.\n\nFix: write a number and a unit, as \"300s\", \"5m\" or \"1h30m\".", s))
	case d < b.lowest || b.highest > 0 && d > b.highest || d%time.Second != 0:
		resp.Diagnostics.AddAttributeError(req.Path, "Duration out of bounds",
			fmt.Sprintf("%q is not %s.\n\nFix: choose one, or leave the attribute out for its default. Nothing lives for ever.", s, b.Description(ctx)))
	}
}

// SameIsNoChange keeps the spelling of the state when the configuration has
// another one for the same length, as after an import.
func SameIsNoChange() planmodifier.String { return same{} }

type same struct{}

func (same) Description(context.Context) string {
	return "Another spelling of the same duration is no change."
}

func (s same) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

func (same) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() || req.ConfigValue.IsNull() {
		return
	}
	old, err := Parse("", req.StateValue)
	now, nerr := Parse("", req.PlanValue)
	if err == nil && nerr == nil && old == now {
		resp.PlanValue = req.StateValue
	}
}
