package duration

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestFormatReadsBack(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 90 * time.Second: "1m30s", 5 * time.Minute: "5m", time.Hour: "1h", 10 * time.Hour: "10h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 720 * time.Hour: "720h", 10 * time.Minute: "10m", 0: "0s",
	} {
		got := Format(d)
		if got != want {
			t.Errorf("Format(%v) = %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(got); err != nil || back != d {
			t.Errorf("%q reads back as %v, %v", got, back, err)
		}
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		value types.String
		ok    bool
	}{
		{"the lowest is accepted", types.StringValue("1s"), true},
		{"the highest is accepted", types.StringValue("1h"), true},
		{"null is left to the default", types.StringNull(), true},
		{"unknown is judged later", types.StringUnknown(), true},
		{"zero is not for ever", types.StringValue("0s"), false},
		{"a bare zero is not for ever", types.StringValue("0"), false},
		{"negative is refused", types.StringValue("-5m"), false},
		{"above the highest is refused", types.StringValue("1h1s"), false},
		{"a part of a second is refused", types.StringValue("1500ms"), false},
		{"a number without a unit is refused", types.StringValue("300"), false},
		{"a day is no unit", types.StringValue("1d"), false},
		{"empty is refused", types.StringValue(""), false},
		{"an overflow is refused", types.StringValue("99999999999h"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var resp validator.StringResponse
			Between(time.Second, time.Hour).ValidateString(t.Context(), validator.StringRequest{ConfigValue: c.value}, &resp)
			if got := !resp.Diagnostics.HasError(); got != c.ok {
				t.Errorf("accepted = %v, want %v: %v", got, c.ok, resp.Diagnostics)
			}
		})
	}
}

func TestSameIsNoChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		state, conf, after string
	}{
		{"another spelling keeps the state's", "5m", "300s", "5m"},
		{"another length is a change", "5m", "301s", "301s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conf := types.StringValue(c.conf)
			resp := planmodifier.StringResponse{PlanValue: conf}
			SameIsNoChange().PlanModifyString(t.Context(), planmodifier.StringRequest{StateValue: types.StringValue(c.state), ConfigValue: conf, PlanValue: conf}, &resp)
			if got := resp.PlanValue.ValueString(); got != c.after {
				t.Errorf("plan = %q, want %q", got, c.after)
			}
		})
	}
}
