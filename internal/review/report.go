package review

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Report is the outcome of a review.
type Report struct {
	Decision sandbox.Decision  // the worst that counts
	Policy   string            // digest of the rules
	Rules    []policy.RuleInfo // those that ran, by id
	Findings []Finding         // by resource in the plan's order, worst first
	Seen     plan.Seen
	Whole    plan.Place // of what has no place of its own
}

// Finding is what a rule said of a resource.
type Finding struct {
	sandbox.Finding
	Address     string
	Type        string
	Attribute   string // as Terraform calls what Path is in the policy's words; "" is the resource
	Place       plan.Place
	Excerpt     []Line // of the source, redacted
	Fingerprint string // the same in the next review, wherever the lines have moved to
	Unchanged   bool   // denied, but the object is there and did not change: only warns
	Known       bool   // in the baseline: reported, and does not count
}

// Line is one line of the source.
type Line struct {
	Number int
	Text   string
	From   int // marked columns, from 1; both 0 when none are
	To     int
}

// Counts reports whether the finding has a say in the decision.
func (f Finding) Counts() bool {
	return !f.Known && f.Effect != sandbox.Allow && f.Effect != sandbox.Waived
}

// order of decisions, worst first.
var order = []sandbox.Decision{sandbox.Failed, sandbox.Deny, sandbox.Unknown, sandbox.Warn, sandbox.Waived, sandbox.Allow}

func rank(d sandbox.Decision) int {
	if i := slices.Index(order, d); i >= 0 {
		return i
	}
	return 0 // what nobody knows is the worst
}

// severities, worst first.
var severities = []string{"critical", "high", "medium", "low"}

// AtLeast reports whether a severity is as bad as the given one, or worse.
func AtLeast(severity, floor string) bool {
	i, j := slices.Index(severities, severity), slices.Index(severities, floor)
	return i < 0 || i <= j
}

// Count gives the number of findings that count, by effect.
func (r *Report) Count(effects ...sandbox.Decision) int {
	n := 0
	for _, f := range r.Findings {
		if f.Counts() && slices.Contains(effects, f.Effect) {
			n++
		}
	}
	return n
}

// silent gives the number of findings that do not count, by why.
func (r *Report) silent() (known, waived int) {
	for _, f := range r.Findings {
		switch {
		case f.Known:
			known++
		case f.Effect == sandbox.Waived:
			waived++
		}
	}
	return known, waived
}

// notJudged are the types that were not judged, with how many there are of each.
func (r *Report) notJudged() map[string]int {
	if r.Seen.Skipped == nil {
		return map[string]int{}
	}
	return r.Seen.Skipped
}

// Summary is one line.
func (r *Report) Summary() string {
	var s strings.Builder
	judged := count(r.Seen.Judged, "resource")
	if r.Seen.Providers > 0 {
		judged += " and " + count(r.Seen.Providers, "provider")
	}
	fmt.Fprintf(&s, "%s: %s judged by %s", r.Decision, judged, count(len(r.Rules), "rule"))
	known, waived := r.silent()
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Count(sandbox.Failed, sandbox.Deny), "denied"}, {r.Count(sandbox.Unknown), "not decided"},
		{r.Count(sandbox.Warn), "warned of"}, {waived, "waived"}, {known, "known before"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&s, ", %d %s", c.n, c.what)
		}
	}
	return s.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

var indices = regexp.MustCompile(`\[[0-9]+\]`)

// fingerprint identifies a finding by rule, resource, place in the resource
// without the order of lists, and what is wrong: a value that gets worse is
// another finding. value is what the message does not tell of it, or "".
func fingerprint(f Finding, value string) string {
	text := fmt.Appendf(nil, "%q %q %q %q", f.Rule, f.Address, indices.ReplaceAllString(f.Path, "[]"), f.Message)
	if value != "" {
		text = fmt.Appendf(text, " %q", value)
	}
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:16])
}
