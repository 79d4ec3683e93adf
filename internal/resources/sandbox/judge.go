package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// notAsked is everything about a sandbox but its environment.
var notAsked = []string{
	"backend", "image", "isolation", "trust", "trust_reason", "multi_tenant", "profile", "lifetime_seconds", "resources", "network",
	"secrets", "labels", "reaper", "detached", "owner", "tenant", "schedule",
}

// judgeStart has the rules on environments judge what the start command is
// given in clear, since that is in the state: its own variables, and its
// arguments. The order for the sandbox, which the runtime has judged, holds
// neither. It reports whether a rule refuses.
func (r *sandboxResource) judgeStart(ctx context.Context, t *sandbox.Template, cmd sandbox.Cmd, report judge.Report) bool {
	in := policy.Input{Kind: policy.KindSandbox, Stage: policy.StagePlan, Unknown: notAsked}
	if t != nil {
		in.Name = t.Name
	}
	report.Places = ofStart
	for _, name := range slices.Sorted(maps.Keys(cmd.Env)) {
		in.Resource.Env = append(in.Resource.Env, policy.Env{Name: name, Value: cmd.Env[name]})
	}
	for i, arg := range cmd.Args {
		name := fmt.Sprintf("argument_%d", i)
		in.Resource.Env = append(in.Resource.Env, policy.Env{Name: name, Value: arg})
		report.Places = report.Places.With(fmt.Sprintf("env[%q]", name), path.Root("start").AtName("command").AtListIndex(i))
	}
	v, err := r.site.Policy().Judge(ctx, in)
	if err != nil {
		report.Error("The policy could not judge", err)
		return true
	}
	v.Findings = slices.DeleteFunc(v.Findings, func(f sandbox.Finding) bool {
		return f.Effect != sandbox.Failed && (f.Effect == sandbox.Unknown || !strings.HasPrefix(f.Path, "env"))
	})
	v.Decision = policy.Decide(v.Findings)
	return report.Verdict(v)
}
