package review

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestAnotherPathOfTheHostIsAnotherFinding(t *testing.T) {
	t.Parallel()
	told := func(source string, port int64) [2]string {
		part := plan.Part{Input: policy.Input{Resource: policy.Resource{
			Mounts:  []policy.Mount{{Source: &source}},
			Network: policy.Network{Publish: []policy.Publish{{Port: &port}}},
		}}}
		var out [2]string
		for i, at := range []string{"mounts[0].source", "network.publish[0]"} {
			out[i] = told(nil, plan.Item{}, part, sandbox.Finding{Rule: "X", Path: at, Message: "the same"}, at, Options{}).Fingerprint
		}
		return out
	}
	a, again, b := told("/srv/a", 80), told("/srv/a", 80), told("/srv/b", 81)
	if a != again {
		t.Error("the same finding is another the second time")
	}
	for i := range a {
		if a[i] == b[i] {
			t.Errorf("%d: another value has the same fingerprint", i)
		}
	}
}
