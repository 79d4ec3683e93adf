package policy_test

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

func TestBuiltinRulesLoad(t *testing.T) {
	e, err := policy.Load(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Rules() {
		t.Log(r.ID, r.Effect, r.Reads)
	}
}
