package sandbox

import (
	"context"
	"fmt"
	"time"

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

	Template string // name of the template; "" = made from none
}

// Verdict is a Guard's answer.
type Verdict struct {
	Decision Decision  `json:"decision"`
	Findings []Finding `json:"findings"` // sorted: worst first, then rule, then path
	Policy   string    `json:"policy"`   // digest of the rules, "sha256:…"
	Rules    []string  `json:"rules"`    // ids of every rule that ran
}

// Decision orders verdicts: error > deny > unknown > warn > allow. Waived is
// for findings only.
type Decision string

const (
	Allow   Decision = "allow"
	Waived  Decision = "waived" // it would have counted, and Finding.Waiver says why it does not
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
	Effect      Decision `json:"effect"`   // Waived, Warn, Unknown, Deny or Failed
	Message     string   `json:"message"`
	Path        string   `json:"path"` // in the request: "network.egress[2].cidr"
	Remediation string   `json:"remediation"`
	Page        string   `json:"page"`             // where the rule is explained
	Waiver      *Waiver  `json:"waiver,omitempty"` // set if and only if Effect is Waived
}

// counts reports whether the finding is among the reasons of a refusal.
func (f Finding) counts() bool { return f.Effect != Warn && f.Effect != Waived }

// Waiver is what excuses a finding. The finding stays in the verdict.
type Waiver struct {
	ID      string    `json:"id"`
	Reason  string    `json:"reason"`
	Owner   string    `json:"owner"`
	Expires time.Time `json:"expires"` // the finding counts again from then on
	Effect  Decision  `json:"effect"`  // what the finding's own would have been
	Origin  string    `json:"origin"`  // who granted it: "floor", a set's name, or "configuration"
}

// String says who waives and until when.
func (w *Waiver) String() string {
	if w == nil {
		return "waived"
	}
	return fmt.Sprintf("waived by %q of %s until %s: %s", w.ID, w.Owner, w.Expires.UTC().Format(time.RFC3339), w.Reason)
}
