package policyfindings

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// words are a finding's texts, in the order that both doors tell them in.
var words = []struct{ name, text string }{
	{"rule", "The rule's id, as `SBX-NET-002`."},
	{"title", "What the rule wants."},
	{"severity", "`critical`, `high`, `medium` or `low`."},
	{"effect", "`error`, `deny`, `unknown`, `warn`, or `waived`."},
	{"message", "What is wrong."},
	{"path", "Where, as `network.egress[0].cidr`."},
	{"remediation", "What to do."},
	{"page", "Where the rule is explained; empty for rules of your own."},
}

func findingTypes() map[string]attr.Type {
	out := map[string]attr.Type{}
	for _, w := range words {
		out[w.name] = types.StringType
	}
	return out
}

var waiverTypes = map[string]attr.Type{"id": types.StringType, "owner": types.StringType, "reason": types.StringType, "expires": types.StringType}

func flattenFinding(f sandbox.Finding) map[string]attr.Value {
	return map[string]attr.Value{
		"rule": types.StringValue(f.Rule), "title": types.StringValue(f.Title), "severity": types.StringValue(f.Severity),
		"effect": types.StringValue(string(f.Effect)), "message": types.StringValue(f.Message), "path": types.StringValue(f.Path),
		"remediation": types.StringValue(f.Remediation), "page": types.StringValue(f.Page),
	}
}

func flattenWaiver(w *sandbox.Waiver) attr.Value {
	if w == nil {
		return types.ObjectNull(waiverTypes)
	}
	return types.ObjectValueMust(waiverTypes, map[string]attr.Value{
		"id": types.StringValue(w.ID), "owner": types.StringValue(w.Owner), "reason": types.StringValue(w.Reason),
		"expires": types.StringValue(w.Expires.UTC().Format(time.RFC3339)),
	})
}
