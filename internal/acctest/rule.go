package acctest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Lifetimes makes a set of rules of a customer's, in which ACME-001 denies
// templates whose sandboxes live longer than limit seconds, and gives its
// directory. The set's name is "strict".
func Lifetimes(t *testing.T, limit int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rule.rego"), fmt.Appendf(nil, lifetimes, limit), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

const lifetimes = `# METADATA
# title: Sandboxes do not live long
# description: A rule of a customer's, for tests of a policy that is tightened.
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
#   remediation: Set a shorter lifetime.
package custom.strict.lifetime

deny contains {"path": ["lifetime_seconds"], "message": "it lives too long"} if {
	input.resource.lifetime_seconds > %d
}
`
