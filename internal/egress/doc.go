// Package egress is what can be said of an allowlist without a network: whether
// it allows a request, and why or why not (Policy), how each rule is enforced
// and where that ends (Mechanisms), what differs between two of them (Diff),
// what is wrong with one (Lint), and which rules would have allowed what was
// refused (Learn).
//
// It does no I/O, and it decides nothing about how a rule is written:
// driver.Canonical does, for rules and for requests. A Policy says no unless a
// rule says yes; a name never opens an address that nobody resolved for it,
// and a protected address is opened only by a rule that names its range.
//
// Package gateway, below, applies a Policy to bytes.
package egress
