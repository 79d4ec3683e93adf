package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// The parts of SARIF 2.1.0 that a report needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool      `json:"tool"`
		Invocations []sarifInvoked `json:"invocations"`
		ColumnKind  string         `json:"columnKind"`
		Results     []sarifResult  `json:"results"`
		Properties  map[string]any `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string         `json:"id"`
		Short      sarifText      `json:"shortDescription"`
		Full       sarifText      `json:"fullDescription"`
		Help       sarifText      `json:"help"`
		HelpURI    string         `json:"helpUri,omitempty"`
		Default    sarifLevel     `json:"defaultConfiguration"`
		Properties map[string]any `json:"properties"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifInvoked struct {
		Successful    bool         `json:"executionSuccessful"`
		Notifications []sarifNotes `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotes struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Kind         string            `json:"kind,omitempty"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Baseline     string            `json:"baselineState,omitempty"`
		Suppressions []sarifSuppressed `json:"suppressions,omitempty"`
		Properties   map[string]any    `json:"properties,omitempty"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifSuppressed struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification,omitempty"`
	}
)

// home is the project's page.
const home = "https://github.com/sandboxio/terraform-provider-sandboxio"

// securitySeverity is the score by which GitHub ranks alerts.
var securitySeverity = map[string]string{"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0"}

// SARIF writes the report as SARIF 2.1.0.
func (r *Report) SARIF(w io.Writer, version string) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "sandboxio", Version: version, InformationURI: home, Rules: []sarifRule{}}},
		Invocations: []sarifInvoked{{Successful: true}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
		Properties: map[string]any{"decision": r.Decision, "policy": r.Policy, "judged": r.Seen.Judged, "providers": r.Seen.Providers, "notJudged": r.notJudged()},
	}
	for _, n := range r.Seen.Remarks() {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotes{"note", sarifText{Text: n}})
	}
	index := map[string]int{}
	for i, rule := range r.Rules {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(rule))
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, r.sarifResultOf(f, index[f.Rule]))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifRuleOf(rule policy.RuleInfo) sarifRule {
	var help strings.Builder
	fmt.Fprintf(&help, "%s\n\n**Fix**: %s\n", rule.Description, rule.Remediation)
	if len(rule.Sources) > 0 {
		help.WriteString("\nSources:\n\n")
		for _, s := range rule.Sources {
			fmt.Fprintf(&help, "- %s, %s\n", s.Document, s.Section)
		}
	}
	level := "error"
	if rule.Effect == "warn" {
		level = "warning"
	}
	return sarifRule{
		ID: rule.ID, Short: sarifText{Text: rule.Title}, Full: sarifText{Text: rule.Description},
		Help: sarifText{Text: rule.Description + "\n\nFix: " + rule.Remediation, Markdown: help.String()}, HelpURI: rule.Page,
		Default:    sarifLevel{level},
		Properties: map[string]any{"security-severity": cmp.Or(securitySeverity[rule.Severity], "9.5"), "tags": []string{"security", "sandbox", rule.Severity}, "precision": "very-high"},
	}
}

// sarifResultOf is a finding with a physical location in any case: GitHub refuses
// the whole log for one result without.
func (r *Report) sarifResultOf(f Finding, rule int) sarifResult {
	out := sarifResult{
		RuleID: f.Rule, RuleIndex: rule, Level: "warning", Message: sarifText{Text: sentence(f)},
		Locations:    []sarifLocation{{Logical: []sarifLogical{{strings.Trim(f.Address+"."+f.Attribute, "."), "resource"}}}},
		Fingerprints: map[string]string{"sandboxio/v1": f.Fingerprint},
	}
	effect := f.Effect
	if f.Waiver != nil {
		effect = f.Waiver.Effect
		out.Suppressions = append(out.Suppressions, sarifSuppressed{"external", "accepted", line(f.Waiver.String())})
	}
	switch effect {
	case sandbox.Deny, sandbox.Failed:
		out.Level = "error"
	case sandbox.Unknown:
		// Kind "open" must have the level "none", which alerts do not show.
		out.Level, out.Properties = "note", map[string]any{"undecided": true}
	case sandbox.Warn, sandbox.Waived, sandbox.Allow:
	}
	if f.Known {
		out.Baseline = "unchanged"
		out.Suppressions = append(out.Suppressions, sarifSuppressed{"external", "accepted", "in the baseline"})
	}
	at := sarifPhysicalOf(f.Place.File, sarifRegion{f.Place.Line, f.Place.Column, f.Place.EndLine, f.Place.EndColumn})
	if at == nil {
		at = sarifPhysicalOf(cmp.Or(r.Whole.File, "."), sarifRegion{StartLine: 1})
	}
	out.Locations[0].Physical = at
	for i, c := range f.Place.Calls {
		out.Related = append(out.Related, sarifLocation{ID: i + 1, Message: &sarifText{Text: "the module is called here"}, Physical: sarifPhysicalOf(c.File, sarifRegion{StartLine: c.Line})})
	}
	return out
}

// sentence is a finding on its own: what, where and how to mend it.
func sentence(f Finding) string {
	s := line(f.Message)
	if f.Attribute != "" {
		s = line(f.Attribute) + ": " + s
	}
	if f.Unchanged {
		s += ". The object exists and does not change, so this denies nothing yet"
	}
	if f.Remediation != "" && f.Effect != sandbox.Unknown {
		s += ". Fix: " + line(f.Remediation)
	}
	return s
}

// sarifPhysicalOf is nil for a place that is not known.
func sarifPhysicalOf(file string, at sarifRegion) *sarifPhysical {
	if file == "" || at.StartLine < 1 {
		return nil
	}
	u := url.URL{Path: path.Clean(file)}
	if path.IsAbs(file) {
		u.Scheme = "file"
	}
	return &sarifPhysical{sarifArtifact{u.String()}, at}
}
