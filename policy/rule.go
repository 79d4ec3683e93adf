package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// RuleInfo is what a rule says of itself.
type RuleInfo struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Severity    string   `json:"severity"` // critical, high, medium, low
	Effect      string   `json:"effect"`   // the most it does: deny or warn
	Kinds       []Kind   `json:"kinds"`
	Stages      []Stage  `json:"stages"`
	Waivable    bool     `json:"waivable"`
	Params      []Param  `json:"params"`
	Sources     []Origin `json:"sources"`
	Remediation string   `json:"remediation"`
	Page        string   `json:"page"`
	Set         string   `json:"set"`   // "builtin", or the customer's set
	Reads       []string `json:"reads"` // of the resource and its facts
}

// Param is a value that the owner of the policy may choose.
type Param struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Default     any    `json:"default"`
	Tighten     string `json:"tighten"` // which change is stricter: "lower", "higher", "fewer" or "more" entries, or "rank" for a higher tier
}

// Origin is where a rule comes from.
type Origin struct {
	Document string `json:"document"`
	Section  string `json:"section"`
}

// rule is a package of Rego that answers deny or warn.
type rule struct {
	RuleInfo
	file    string
	answers []string // "deny", "warn": those it defines
	pkg     ast.Ref
	reads   []path // in the document
}

const pages = "https://github.com/sandboxio/terraform-provider-sandboxio/blob/main/docs/policies/"

var (
	ruleID     = regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+$`)
	severities = []string{"critical", "high", "medium", "low"}
)

// newRule reads a package's METADATA. All of it must be there: a finding that
// cannot be explained is not worth having. Errors name the file and the line.
func newRule(set string, says *metadata) (*rule, error) {
	m, a := says.module, says.block
	if a == nil || a.Custom["id"] == nil {
		return nil, fmt.Errorf("%s: package %s has no METADATA with a custom.id; helpers belong below %s.lib", says.at("custom"), m.Package.Path, setRoot(set))
	}
	var custom struct {
		ID          string           `json:"id"`
		Severity    string           `json:"severity"`
		Effect      string           `json:"effect"`
		Kinds       []Kind           `json:"kinds"`
		Stages      []Stage          `json:"stages"`
		Waivable    *bool            `json:"waivable"`
		Remediation string           `json:"remediation"`
		Params      map[string]Param `json:"params"`
		Sources     []Origin         `json:"sources"`
	}
	raw, err := json.Marshal(a.Custom)
	if err != nil {
		return nil, fmt.Errorf("%s: METADATA: %w", says.at("custom"), err)
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&custom); err != nil {
		return nil, says.mistake(err)
	}
	r := &rule{file: m.Package.Location.File, pkg: m.Package.Path, RuleInfo: RuleInfo{
		ID: custom.ID, Title: a.Title, Description: strings.TrimSpace(a.Description), Severity: custom.Severity, Effect: custom.Effect,
		Kinds: custom.Kinds, Stages: custom.Stages, Sources: custom.Sources, Remediation: strings.TrimSpace(custom.Remediation), Set: set,
	}}
	var errs []error
	need := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: METADATA: %s "+format, append([]any{says.at(strings.Split(key, ".")...), key}, args...)...))
		}
	}
	ours := strings.HasPrefix(r.ID, "SBX-")
	need(ruleID.MatchString(r.ID), "custom.id", "%q is not like ACME-NET-001", r.ID)
	need(ours == (set == builtin), "custom.id", "%q: the prefix SBX- is for built-in rules, and for all of them", r.ID)
	need(r.Title != "", "title", "is missing")
	need(r.Description != "", "description", "is missing")
	need(r.Remediation != "", "custom.remediation", "is missing")
	need(custom.Waivable != nil, "custom.waivable", "is missing")
	need(slices.Contains(severities, r.Severity), "custom.severity", "%q is none of %q", r.Severity, severities)
	need(r.Effect == "deny" || r.Effect == "warn", "custom.effect", "%q is neither deny nor warn", r.Effect)
	need(len(r.Kinds) > 0 && subset(r.Kinds, kinds), "custom.kinds", "%q are not some of %q", r.Kinds, kinds)
	need(len(r.Stages) > 0 && subset(r.Stages, stages), "custom.stages", "%q are not some of %q", r.Stages, stages)
	need(len(r.Sources) > 0, "custom.sources", "are missing")
	for i, s := range r.Sources {
		need(s.Document != "" && s.Section != "", fmt.Sprintf("custom.sources.%d", i), "needs a document and a section")
	}
	if custom.Waivable != nil {
		r.Waivable = *custom.Waivable
	}
	if ours {
		r.Page = pages + r.ID + ".md"
	}
	for _, name := range slices.Sorted(maps.Keys(custom.Params)) {
		p := custom.Params[name]
		p.Name = name
		if err := p.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: METADATA: custom.params.%s: %w", says.at("custom", "params", name), name, err))
		}
		r.Params = append(r.Params, p)
	}
	return r, errors.Join(errs...)
}

func subset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(v T) bool { return !slices.Contains(whole, v) })
}

// applies reports whether the rule has something to say of a kind at a stage.
func (r *rule) applies(k Kind, s Stage) bool {
	return slices.Contains(r.Kinds, k) && slices.Contains(r.Stages, s)
}
