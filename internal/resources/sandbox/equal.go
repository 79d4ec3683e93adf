package sandbox

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
)

// equivalent keeps the digest that an import left in the state, when the
// planned manifest is the one it stands for.
func equivalent(state, plan types.String) types.String {
	t := parse(plan.ValueString())
	if t == nil {
		return plan
	}
	if d, err := t.Digest(); err == nil && d == state.ValueString() {
		return state
	}
	return plan
}

// sameButPolicy reports whether two manifests differ in nothing but the policy
// that judged them, which changes no sandbox.
func sameButPolicy(a, b types.String) bool {
	x, y := parse(a.ValueString()), parse(b.ValueString())
	if x == nil || y == nil {
		return false
	}
	x.Policy, y.Policy = "", ""
	dx, errx := x.Digest()
	dy, erry := y.Digest()
	return errx == nil && erry == nil && dx == dy
}

// observedAs keeps the lifetime that an import read from two stamps of whole
// seconds, when the planned one may have been the one they came from.
func observedAs(state, plan types.String) types.String {
	was, err := duration.Parse("lifetime", state)
	is, perr := duration.Parse("lifetime", plan)
	if err == nil && perr == nil && !plan.IsUnknown() && (was-is).Abs() <= time.Second {
		return state
	}
	return plan
}
