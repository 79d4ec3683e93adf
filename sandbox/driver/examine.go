package driver

import "context"

// An Examiner looks at its own provider for whatever would keep sandboxes
// from being made or enforced there. Any Backend may implement it; it leaves
// nothing behind at the provider.
type Examiner interface {
	// Examine answers in the order in which to repair. It goes on as far as
	// it can: a provider that does not answer is one failed Finding, not an
	// error.
	Examine(ctx context.Context) []Finding
}

// Finding is one thing an Examiner looked at.
type Finding struct {
	Name   string // "engine", "helper volume", …
	OK     bool
	Detail string // what was seen
	Hint   string // the command that repairs it; "" when OK
}
