package prove

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Outcome of an attempt.
type Outcome string

// The outcomes. Only closed is good for an attempt, only open for a control.
const (
	Closed        Outcome = "closed"
	Open          Outcome = "open"
	NotApplicable Outcome = "not applicable" // it was not shown that it can come through
	NotTried      Outcome = "not tried"      // the probe did not get to finish it
)

// Schema of the evidence.
const Schema = "sandboxio.egress.prove/v1"

// Evidence is what a run found.
type Evidence struct {
	Schema  string    `json:"schema"`
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	Engine  Engine    `json:"engine"`
	Image   string    `json:"image"`          // of the sandbox, by digest
	Probe   string    `json:"probe"`          // digest of the program inside
	Pinned  bool      `json:"probe_pinned"`   // that digest is the one that this release was linked with
	Only    []string  `json:"only,omitempty"` // attempts that were asked for; without, the whole catalogue
	Modes   []Section `json:"modes"`
	Limits  []string  `json:"limits"` // what is open by design

	Proven bool     `json:"proven"`   // there are no problems
	Wrong  []string `json:"problems"` // see Problems
}

// settle writes down what the evidence amounts to.
func (e *Evidence) settle() {
	for i, r := range e.Modes {
		e.Modes[i].Counts = map[Outcome]int{}
		for _, o := range []Outcome{Closed, Open, NotApplicable, NotTried} {
			e.Modes[i].Counts[o] = r.Count(o)
		}
	}
	e.Wrong = append([]string{}, e.Problems()...)
	e.Proven = len(e.Wrong) == 0
}

// Engine is where it was shown.
type Engine struct {
	Version        string `json:"version"`
	Kernel         string `json:"kernel"`
	Runtime        string `json:"runtime"`
	RuntimeVersion string `json:"runtime_version,omitempty"` // an engine knows that of its own runtime alone
}

// Section is one mode.
type Section struct {
	Mode      Mode            `json:"mode"`
	Policy    []string        `json:"policy"` // canonical rules
	Digest    string          `json:"policy_digest"`
	Profile   string          `json:"profile"`
	Isolation string          `json:"isolation"` // measured
	Evidence  string          `json:"isolation_evidence"`
	Network   string          `json:"network"` // mechanism, as the plan tells
	Counts    map[Outcome]int `json:"counts"`  // of the attempts
	Attempts  []Finding       `json:"attempts"`
	Controls  []Finding       `json:"controls"`
	Stray     []string        `json:"stray"` // came to a canary, and belongs to no attempt
}

// Finding is one attempt, or one control.
type Finding struct {
	Name       string     `json:"name"`
	Text       string     `json:"text"`
	Outcome    Outcome    `json:"outcome"`
	Expected   Outcome    `json:"expected"`
	Protection Protection `json:"protection,omitempty"`
	Control    Outcome    `json:"control,omitempty"` // the same where nothing is enforced
	After      Outcome    `json:"after,omitempty"`   // of a control: the same once more, after all attempts
	Said       string     `json:"said,omitempty"`    // by the probe; no part of the verdict
	Why        string     `json:"why,omitempty"`     // it is not applicable, or not tried
	Seen       []string   `json:"seen,omitempty"`    // by the canaries
}

// Limits are what no attempt is made of.
func Limits() []string {
	return []string{
		"domain fronting: a server that serves other names too can be asked for them inside TLS, which is not opened",
		"wildcard zones: whoever runs a zone that a wildcard allows can be sent data in the names that are asked for",
	}
}

// Count counts the outcomes of attempts.
func (r Section) Count(o Outcome) int {
	n := 0
	for _, f := range r.Attempts {
		if f.Outcome == o {
			n++
		}
	}
	return n
}

// enough attempts that can fail make a proof, of a whole catalogue.
const enough = 60

// Problems lists what keeps the evidence from being a proof: of the catalogue,
// or of no more than the attempts in Only.
func (e Evidence) Problems() []string {
	var out []string
	for _, r := range e.Modes {
		for _, f := range append(r.Controls, r.Attempts...) {
			if f.Outcome != f.Expected && f.Outcome != NotApplicable {
				out = append(out, fmt.Sprintf("%s: %s is %s, expected %s", r.Mode, f.Name, f.Outcome, f.Expected))
			}
		}
		for _, f := range r.Controls {
			if f.Outcome == Open && f.After != Open {
				out = append(out, fmt.Sprintf("%s: %s was open, and is %s after the attempts: what is closed may have had nobody to come to", r.Mode, f.Name, f.After))
			}
		}
		for _, s := range r.Stray {
			out = append(out, fmt.Sprintf("%s: nobody's: %s", r.Mode, s))
		}
		switch n := r.Count(Closed) + r.Count(Open); {
		case len(r.Attempts) == 0:
			out = append(out, fmt.Sprintf("%s: nothing was tried", r.Mode))
		case len(e.Only) == 0 && n < enough:
			out = append(out, fmt.Sprintf("%s: only %d attempts can fail here, and %d are needed", r.Mode, n, enough))
		case len(e.Only) > 0 && n < len(r.Attempts):
			out = append(out, fmt.Sprintf("%s: only %d of the %d attempts that were asked for can fail here", r.Mode, n, len(r.Attempts)))
		}
	}
	for _, name := range e.Only {
		if !slices.ContainsFunc(e.Modes, func(r Section) bool {
			return slices.ContainsFunc(r.Attempts, func(f Finding) bool { return f.Name == name })
		}) {
			out = append(out, fmt.Sprintf("%s was not tried: it is for another mode", name))
		}
	}
	if len(e.Modes) == 0 {
		out = append(out, "nothing was tried")
	}
	return out
}

func (e Evidence) pinned() string {
	if e.Pinned {
		return "this release's"
	}
	return "compared with nothing: sandboxio was built from source"
}

// Text writes a table for people.
func (e Evidence) Text(w io.Writer) {
	fmt.Fprintf(w, "engine   %s, kernel %s\nruntime  %s %s\nimage    %s\nprobe    %s (%s)\n", e.Engine.Version, e.Engine.Kernel, e.Engine.Runtime, e.Engine.RuntimeVersion, e.Image, e.Probe, e.pinned())
	if len(e.Only) > 0 {
		fmt.Fprintf(w, "partial  no proof but of %s\n", strings.Join(e.Only, ", "))
	}
	for _, r := range e.Modes {
		fmt.Fprintf(w, "\nmode %s, profile %s, isolation %s (%s)\n  %s\n  policy %s\n", r.Mode, r.Profile, r.Isolation, r.Evidence, r.Network, r.Digest)
		for _, rule := range r.Policy {
			fmt.Fprintf(w, "    %s\n", rule)
		}
		for _, f := range append(r.Controls, r.Attempts...) {
			mark := "ok  "
			switch {
			case f.Outcome == NotApplicable:
				mark = "n/a "
			case f.Outcome != f.Expected, f.Expected == Open && f.After != Open:
				mark = "FAIL"
			}
			fmt.Fprintf(w, "  %s  %-20s %-15s %-30s %s", mark, f.Name, f.Outcome, f.Protection, f.Text)
			if f.Why != "" {
				fmt.Fprintf(w, " (%s)", f.Why)
			}
			if f.After != "" && f.After != f.Outcome {
				fmt.Fprintf(w, " (after the attempts: %s)", f.After)
			}
			fmt.Fprintln(w)
			if mark == "FAIL" {
				for _, s := range f.Seen {
					fmt.Fprintf(w, "        seen: %s\n", s)
				}
				if f.Said != "" {
					fmt.Fprintf(w, "        said: %s\n", f.Said)
				}
			}
		}
		for _, s := range r.Stray {
			fmt.Fprintf(w, "  FAIL  nobody's: %s\n", s)
		}
		fmt.Fprintf(w, "  %s: %d closed, %d open, %d not applicable, %d not tried; %d controls\n", r.Mode, r.Count(Closed), r.Count(Open), r.Count(NotApplicable), r.Count(NotTried), len(r.Controls))
	}
	fmt.Fprintln(w, "\nopen by design, and not tried:")
	for _, l := range e.Limits {
		fmt.Fprintln(w, "  "+l)
	}
}
