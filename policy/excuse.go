package policy

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// exemptions are the waivers of an engine.
type exemptions struct {
	all     []*waiver
	reached []atomic.Bool // those that some input was a target of
}

// Origins of waivers that are no set's name: the floor, and the configuration
// which they excuse, that is the provider's block or a program's Options.
const (
	byFloor         = "floor"
	byConfiguration = "configuration"
)

// grant is what one origin grants.
type grant struct {
	origin  string
	waivers []Waiver
	file    string // that they stand in; "" = none
	lines   []int
}

// newExemptions refuses what would make waivers hard to tell apart, or too
// many; every other fault is a finding.
func newExemptions(granted []grant, rules []RuleInfo, base foundation) (exemptions, error) {
	known := map[string]*RuleInfo{}
	for i := range rules {
		known[rules[i].ID] = &rules[i]
	}
	var x exemptions
	var errs []error
	owner := map[string]string{}
	for _, g := range granted {
		for i, w := range g.waivers {
			field := fmt.Sprintf("policy.waivers[%d].id", i)
			if !waiverID.MatchString(w.ID) {
				errs = append(errs, driver.Invalid(field, fmt.Sprintf("%q, granted by %s, is no id for a waiver", w.ID, g.origin), "use letters, digits, '.', '_' and '-', 64 at most"))
			}
			if prior, taken := owner[w.ID]; taken {
				errs = append(errs, driver.Invalid(field, fmt.Sprintf("the waiver %q is granted twice, by %s and by %s", w.ID, prior, g.origin), "choose another id for one of them"))
			}
			owner[w.ID] = g.origin
			made := newWaiver(w, g.origin, known)
			if made.file = g.file; g.file != "" {
				made.line = 1
			}
			if i < len(g.lines) {
				made.line = g.lines[i]
			}
			if r, ok := known[w.Rule]; ok {
				made.forbid = base.floored && g.origin != byFloor && slices.Contains(base.sets, r.Set)
			}
			x.all = append(x.all, made)
		}
	}
	if len(x.all) > maxWaivers {
		errs = append(errs, driver.Invalid("policy.waivers", fmt.Sprintf("there are %d waivers", len(x.all)), fmt.Sprintf("%d is the most; mend what they excuse", maxWaivers)))
	}
	x.reached = make([]atomic.Bool, len(x.all))
	return x, driver.Join(errs...)
}

// excuse marks the findings that a waiver in force is about, and adds what is
// wrong with the waivers that are about this input. It is the only place where
// a waiver has effect.
func (x *exemptions) excuse(v *sandbox.Verdict, s *subject, in Input, now time.Time) {
	var added []sandbox.Finding
	for i, w := range x.all {
		say := func(id string, effect sandbox.Decision, format string, args ...any) {
			added = append(added, ownFinding(id, effect, w.field, fmt.Sprintf("the waiver %q ", w.ID)+fmt.Sprintf(format, args...)))
		}
		if w.forbid {
			say(weakenedID, sandbox.Deny, "has no effect: only the floor grants exemptions from its own rules and from the built-in ones")
		}
		if w.Target.fault() == "" && !w.Target.covers(in) {
			continue
		}
		x.reached[i].Store(true)
		if problem := w.problem(now); problem != "" {
			say(faultyID, sandbox.Warn, "has no effect: %s", problem)
			continue
		}
		if w.forbid {
			continue
		}
		if w.origin == byConfiguration {
			say(weakenedID, sandbox.Warn, "was granted by the configuration that it excuses")
		}
		if problem := w.apply(v, s); problem != "" {
			say(idleID, sandbox.Warn, "excuses nothing here: %s", problem)
		}
	}
	v.Findings = append(v.Findings, added...)
}

// excuseNodes marks the findings about a graph's nodes that a waiver in force
// is about. What is wrong with waivers is said where each node is judged by
// itself.
func (x *exemptions) excuseNodes(v *sandbox.Verdict, g Graph, now time.Time) {
	for _, w := range x.all {
		if w.problem(now) != "" || w.forbid {
			continue
		}
		for i := range v.Findings {
			f := &v.Findings[i]
			n, field, ok := g.Place(f.Path)
			if !ok || f.Rule != w.Rule || f.Effect == sandbox.Failed || f.Effect == sandbox.Unknown || field != w.Path || !w.Target.covers(n.input()) {
				continue
			}
			if text, ok := n.valueOf(field); ok && w.binds(text) {
				w.mark(f)
			}
		}
	}
}

// mark makes f an excused finding.
func (w *waiver) mark(f *sandbox.Finding) {
	f.Waiver = &sandbox.Waiver{ID: w.ID, Reason: w.Reason, Owner: w.Owner, Expires: w.expires, Effect: f.Effect, Origin: w.origin}
	f.Effect = sandbox.Waived
}

// apply marks what w excuses in v, or says why that is nothing.
func (w *waiver) apply(v *sandbox.Verdict, s *subject) (problem string) {
	if !slices.Contains(v.Rules, w.Rule) {
		return "" // the rule judges other kinds, or at another stage
	}
	elsewhere := ""
	excused, pending := false, false
	for i := range v.Findings {
		f := &v.Findings[i]
		at, err := parsePath(f.Path)
		if f.Rule != w.Rule || err != nil {
			continue
		}
		if !w.path.matches(at) {
			elsewhere = ", but at " + f.Path
			continue
		}
		switch f.Effect {
		case sandbox.Failed, sandbox.Waived, sandbox.Allow:
			pending = true
			continue
		case sandbox.Warn, sandbox.Unknown, sandbox.Deny:
		}
		text, known := s.valueAt(at)
		switch {
		case slices.Contains(s.firm, f.Rule+" "+f.Path):
			problem = fmt.Sprintf("what %s finds at %s cannot be waived", w.Rule, f.Path)
		case !known:
			pending = true // judged again once it is known, and the waiver with it
		case w.binds(text):
			w.mark(f)
			excused = true
		default:
			problem = fmt.Sprintf("the value at %s is another than the one it names", f.Path)
		}
	}
	if excused || pending || w.graph {
		return "" // or it may excuse something in the graph of the plan
	}
	return cmp.Or(problem, fmt.Sprintf("%s finds nothing at %s%s", w.Rule, w.Path, elsewhere))
}

// binds reports whether text is the value that w names.
func (w *waiver) binds(text string) bool {
	if w.Value != nil {
		return *w.Value == text
	}
	return w.ValueSHA256 == digestText(text)
}

// Unmatched are the findings about waivers that nothing judged so far was a
// target of. They mean something once everything has been judged, as at the
// end of a review.
func (e *Engine) Unmatched() []sandbox.Finding {
	var out []sandbox.Finding
	for i, w := range e.exempt.all {
		if !e.exempt.reached[i].Load() {
			out = append(out, ownFinding(idleID, sandbox.Warn, w.field, fmt.Sprintf("the waiver %q excuses nothing: nothing judged is its target", w.ID)))
		}
	}
	return out
}

// Waivers lists the waivers of the engine, and what is wrong with each.
func (e *Engine) Waivers() []WaiverInfo {
	now := e.now()
	out := make([]WaiverInfo, len(e.exempt.all))
	for i, w := range e.exempt.all {
		out[i] = WaiverInfo{Waiver: w.Waiver, Origin: w.origin, Until: w.expires, Problem: w.problem(now), Field: w.field, File: w.file, Line: w.line}
		if w.forbid && out[i].Problem == "" {
			out[i].Problem = "the floor does not let it have effect"
		}
	}
	return out
}

// WaiverInfo is a waiver and where it stands.
type WaiverInfo struct {
	Waiver
	Origin  string    // "floor", a set's name, or "configuration"
	Until   time.Time // the end of Expires
	Problem string    // why it has no effect; "" = it has
	Field   string    // the path of findings about it
	File    string    // the file it was read from, a bundle's where it is in one; "" = none
	Line    int       // in File, from 1; 1 in a bundle
}
