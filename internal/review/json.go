package review

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

var errNoBaseline = errors.New("not a report of sandboxio policy check --format json")

// Schema names the layout of the JSON.
const Schema = "sandboxio.policy.report/v1"

// place is a Place as JSON has it.
type place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Exact     bool   `json:"exact"` // the very value; otherwise the nearest thing that encloses it
	Calls     []call `json:"calls"` // of modules, outermost first
}

type call struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// entry is a Finding as JSON has it.
type entry struct {
	Rule        string           `json:"rule"`
	Title       string           `json:"title"`
	Severity    string           `json:"severity"`
	Effect      sandbox.Decision `json:"effect"`
	Message     string           `json:"message"`
	Address     string           `json:"address"`
	Type        string           `json:"type"`
	Attribute   string           `json:"attribute"`
	Path        string           `json:"path"`
	Place       *place           `json:"place"`
	Remediation string           `json:"remediation"`
	Page        string           `json:"page"`
	Fingerprint string           `json:"fingerprint"`
	Unchanged   bool             `json:"unchanged"`
	Known       bool             `json:"known"`  // in the baseline
	Waiver      *sandbox.Waiver  `json:"waiver"` // not null if and only if the effect is "waived"
}

type document struct {
	Schema    string           `json:"schema"`
	Decision  sandbox.Decision `json:"decision"`
	Policy    string           `json:"policy"`
	Rules     []string         `json:"rules"`     // that ran
	Judged    int              `json:"judged"`    // resources
	Providers int              `json:"providers"` // whose configuration was judged, beside the resources
	Deleted   int              `json:"deleted"`
	Skipped   map[string]int   `json:"not_judged"` // how many of each type are made, and were not judged
	Partial   bool             `json:"partial"`    // resources of the configuration are not in the plan
	Notes     []string         `json:"notes"`
	Findings  []entry          `json:"findings"`
}

// JSON writes the report as one document.
func (r *Report) JSON(w io.Writer) error {
	d := document{
		Schema: Schema, Decision: r.Decision, Policy: r.Policy, Rules: []string{}, Judged: r.Seen.Judged, Providers: r.Seen.Providers, Deleted: r.Seen.Deleted, Skipped: r.notJudged(), Partial: r.Seen.Partial,
		Notes: append([]string{}, r.Seen.Remarks()...), Findings: []entry{},
	}
	for _, rule := range r.Rules {
		d.Rules = append(d.Rules, rule.ID)
	}
	for _, f := range r.Findings {
		e := entry{
			Rule: f.Rule, Title: f.Title, Severity: f.Severity, Effect: f.Effect, Message: f.Message, Address: f.Address, Type: f.Type,
			Attribute: f.Attribute, Path: f.Path, Remediation: f.Remediation, Page: f.Page, Fingerprint: f.Fingerprint,
			Unchanged: f.Unchanged, Known: f.Known, Waiver: f.Waiver,
		}
		if p := f.Place; p.File != "" {
			e.Place = &place{p.File, p.Line, p.Column, p.EndLine, p.EndColumn, p.Exact, []call{}}
			for _, c := range p.Calls {
				e.Place.Calls = append(e.Place.Calls, call(c))
			}
		}
		d.Findings = append(d.Findings, e)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// keeps reports whether a baseline keeps findings of that effect. What is not
// decided may turn out to be anything, a rule that fails says nothing of what it
// judges, and what is waived has an end: none of them is known.
func keeps(effect sandbox.Decision) bool { return effect == sandbox.Deny || effect == sandbox.Warn }

// ReadBaseline gives the fingerprints of what denies or warns in a report as
// JSON writes it.
func ReadBaseline(r io.Reader) (map[string]bool, error) {
	var d struct {
		Schema   string `json:"schema"`
		Findings []struct {
			Fingerprint string           `json:"fingerprint"`
			Effect      sandbox.Decision `json:"effect"`
		} `json:"findings"`
	}
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return nil, err
	}
	if d.Schema != Schema {
		return nil, errNoBaseline
	}
	out := map[string]bool{}
	for _, f := range d.Findings {
		if keeps(f.Effect) {
			out[f.Fingerprint] = true
		}
	}
	return out, nil
}
