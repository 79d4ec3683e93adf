package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Rules of the engine's own, which no Rego can express or switch off.
const (
	weakenedID = "SBX-POL-001"
	failedID   = "SBX-POL-002"
	faultyID   = "SBX-WVR-001"
	idleID     = "SBX-WVR-002"
)

var ownRules = []RuleInfo{
	{
		ID: weakenedID, Title: "The rules are enforced as they stand", Severity: "medium", Effect: "deny", Kinds: kinds, Stages: stages,
		Description: "The configuration turns denials into warnings, sets a parameter looser than it stands, or grants itself a waiver. " +
			"Every verdict says so, since the one who is judged may be the one who weakened the judge. Where a floor is set, this denies " +
			"in every mode, and what was weakened stays as the floor has it; where none is, it warns.",
		Sources:     []Origin{{"sandboxio design", "7 Policy"}},
		Remediation: "Take the mode, the parameter or the waiver out of the configuration, or have it granted where the policy is kept.",
		Page:        pages + weakenedID + ".md", Set: builtin,
	},
	{
		ID: failedID, Title: "Rules can be evaluated", Severity: "critical", Effect: "deny", Kinds: kinds, Stages: stages,
		Description: "An evaluation broke off: it took too long, it failed outside any one rule, or no rule applied. " +
			"What was not judged does not pass. Of what runs something that a plan does not tell of, as a Helm release or a module that was not " +
			"fetched, a review says that it is not decided; and so it says of a set of rules that the provider names and the review was not told of. " +
			"A review also refuses what cannot be read as it is written, and names that Terraform drops without a word.",
		Sources:     []Origin{{"sandboxio design", "7 Policy"}},
		Remediation: "Read the message. If rules of your own are at fault, mend them; if the machine was overloaded, try again; otherwise report it. Review what a plan does not tell of where it is written, and name every set of rules with --policy.",
		Page:        pages + failedID + ".md", Set: builtin,
	},
	{
		ID: faultyID, Title: "A waiver is in order", Severity: "medium", Effect: "warn", Kinds: kinds, Stages: stages,
		Description: "A waiver expired, expires too late, cannot be read, leaves open what it is about, or is for a rule that cannot be waived. " +
			"It has no effect, so that what it was to excuse counts.",
		Sources:     []Origin{{"sandboxio design", "7 Policy"}},
		Remediation: "Mend what the waiver excuses and take it out, or have it granted anew.",
		Page:        pages + faultyID + ".md", Set: builtin,
	},
	{
		ID: idleID, Title: "A waiver excuses something", Severity: "low", Effect: "warn", Kinds: kinds, Stages: stages,
		Description: "A waiver is in force and there is nothing for it to excuse: the weakness is gone, the value is another than the one that " +
			"was looked at, or nothing is its target. Another value counts as if there were no waiver.",
		Sources:     []Origin{{"sandboxio design", "7 Policy"}},
		Remediation: "Take the waiver out, or have the value that is there now looked at.",
		Page:        pages + idleID + ".md", Set: builtin,
	},
}

func ownFinding(id string, effect sandbox.Decision, at, message string) sandbox.Finding {
	i := slices.IndexFunc(ownRules, func(r RuleInfo) bool { return r.ID == id })
	r := rule{RuleInfo: ownRules[i]}
	return r.finding(effect, at, message)
}

func failure(at, message string) sandbox.Finding {
	return ownFinding(failedID, sandbox.Failed, at, message)
}

func (r *rule) finding(effect sandbox.Decision, at, message string) sandbox.Finding {
	return sandbox.Finding{
		Rule: r.ID, Title: r.Title, Severity: r.Severity, Effect: effect, Message: message, Path: at, Remediation: r.Remediation, Page: r.Page,
	}
}

// order of decisions, worst first.
var order = []sandbox.Decision{sandbox.Failed, sandbox.Deny, sandbox.Unknown, sandbox.Warn, sandbox.Waived, sandbox.Allow}

// Decide is what findings amount to: the worst effect among them, where what is
// waived does not count. An effect that nobody knows is a failure.
func Decide(findings []sandbox.Finding) sandbox.Decision {
	worst := len(order) - 1
	for _, f := range findings {
		if f.Effect != sandbox.Waived {
			worst = min(worst, max(slices.Index(order, f.Effect), 0))
		}
	}
	return order[worst]
}

// conclude applies the mode, sorts, and takes the worst. There is no way from
// Failed to anything better.
func (e *Engine) conclude(v *sandbox.Verdict) {
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Effect == sandbox.Deny && e.mode == Advise && f.Rule != weakenedID {
			f.Effect = sandbox.Warn
		}
	}
	slices.SortFunc(v.Findings, func(a, b sandbox.Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Effect), slices.Index(order, b.Effect)),
			cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			strings.Compare(a.Rule, b.Rule), byPlace(a.Path, b.Path), strings.Compare(a.Message, b.Message),
		)
	})
	slices.Sort(v.Rules)
	v.Decision = Decide(v.Findings)
}

// byPlace compares paths as a reader would: the second rule comes before the
// tenth.
func byPlace(a, b string) int {
	p, perr := parsePath(a)
	q, qerr := parsePath(b)
	if perr != nil || qerr != nil {
		return strings.Compare(a, b)
	}
	return slices.CompareFunc(p, q, func(x, y any) int {
		i, ok := x.(int)
		j, also := y.(int)
		if ok && also {
			return cmp.Compare(i, j)
		}
		return strings.Compare(fmt.Sprint(x), fmt.Sprint(y))
	})
}
