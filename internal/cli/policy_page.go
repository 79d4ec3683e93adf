package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// page is a rule as a page of documentation.
func page(r policy.RuleInfo) string {
	var b strings.Builder
	waivable := "yes"
	if !r.Waivable {
		waivable = "no"
	}
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n\n", r.ID, r.Title, r.Description)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| severity | %s |\n| effect | %s |\n| judges | %s |\n| when | %s |\n| waivable | %s |\n\n",
		r.Severity, r.Effect, joined(r.Kinds), joined(r.Stages), waivable)
	fmt.Fprintf(&b, "## What to do\n\n%s\n", r.Remediation)
	if len(r.Params) > 0 {
		b.WriteString("\n## Parameters\n\n| name | default | |\n|---|---|---|\n")
		for _, p := range r.Params {
			value, err := json.Marshal(p.Default)
			if err != nil {
				value = []byte("?") // was JSON when it was read
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", p.Name, value, p.Description)
		}
	}
	fmt.Fprintf(&b, "\n## What it reads\n\n")
	for _, at := range r.Reads {
		fmt.Fprintf(&b, "- `%s`\n", at)
	}
	b.WriteString("\n## Why, and who else says so\n\n")
	for _, s := range r.Sources {
		fmt.Fprintf(&b, "- %s: %s\n", s.Document, s.Section)
	}
	return b.String()
}
