package review

import (
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// problems are findings for what cannot be read, one for each.
func problems(err error) []sandbox.Finding {
	var out []sandbox.Finding
	for _, p := range driver.Problems(err) {
		message := string(p.Code)
		if p.Err != nil {
			message = p.Err.Error()
		}
		out = append(out, sandbox.Finding{Message: message, Path: p.Field, Remediation: p.Hint})
	}
	return out
}
