package template_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// same compares a value over steps.
type same struct{}

func (same) CompareValues(values ...any) error {
	for _, v := range values[1:] {
		if v != values[0] {
			return fmt.Errorf("changed from %v to %v", values[0], v)
		}
	}
	return nil
}

// writeRule makes a customer's set that allows lifetimes up to a minute.
func writeRule(t *testing.T, dir string) {
	t.Helper()
	const rule = `# METADATA
# title: Sandboxes live for a minute at most
# description: A rule of the customer's, for the test of a policy that is tightened.
# custom:
#   id: ACME-001
#   severity: high
#   effect: deny
#   kinds: [template]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   sources:
#     - document: "our own book"
#       section: "1"
#   remediation: Set lifetime to 60s or less.
package custom.strict.lifetime

deny contains {"path": ["lifetime_seconds"], "message": "it lives longer than a minute"} if {
	input.resource.lifetime_seconds > 60
}
`
	if err := os.WriteFile(filepath.Join(dir, "rule.rego"), []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
}
