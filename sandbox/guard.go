package sandbox

import (
	"context"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A Guard judges a resolved order before anything is made. Package policy
// makes one from Rego. Judge is safe for concurrent use and does no I/O.
//
// An error from Judge counts as a denial.
type Guard interface {
	Judge(ctx context.Context, req Request) (Verdict, error)
}

// Request is what a Guard sees: the backend's declared facts, the order in
// which nothing is left open, and how the backend will enforce it. It holds
// names of secrets at most, never values.
type Request struct {
	Backend driver.Info
	Spec    driver.Spec
	Plan    driver.Plan
	Secrets []string // names a template declares
}

// Verdict is a Guard's answer.
type Verdict struct {
	Decision Decision  `json:"decision"`
	Findings []Finding `json:"findings"` // sorted: worst first, then rule, then path
	Policy   string    `json:"policy"`   // digest of the rules, "sha256:…"
	Rules    []string  `json:"rules"`    // ids of every rule that ran
}

// Decision orders verdicts: error > deny > unknown > warn > allow.
type Decision string

const (
	Allow   Decision = "allow"
	Warn    Decision = "warn"
	Unknown Decision = "unknown" // a rule reads a value that is not known yet
	Deny    Decision = "deny"
	Failed  Decision = "error" // a rule could not be evaluated; counts as deny
)

// Finding is one thing a rule has to say.
type Finding struct {
	Rule        string   `json:"rule"` // "SBX-NET-001"
	Title       string   `json:"title"`
	Severity    string   `json:"severity"` // critical, high, medium, low
	Effect      Decision `json:"effect"`   // Warn, Unknown, Deny or Failed
	Message     string   `json:"message"`
	Path        string   `json:"path"` // in the request: "network.egress[2].cidr"
	Remediation string   `json:"remediation"`
	Page        string   `json:"page"` // where the rule is explained
}
