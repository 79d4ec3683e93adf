package sandbox

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
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
