package review_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// sample is a report with a finding of every sort.
func sample() *review.Report {
	finding := func(effect sandbox.Decision, address string) review.Finding {
		return review.Finding{
			Finding: sandbox.Finding{
				Rule: "SBX-NET-002", Title: "No allowlist reaches all addresses", Severity: "critical", Effect: effect, Message: "0.0.0.0/0 is every address there is",
				Path: "network.egress[0].cidr", Remediation: "List the networks.", Page: "https://example.com/SBX-NET-002.md",
			},
			Address: address, Type: "sandboxio_template", Attribute: "network_policy.egress[0].cidr", Fingerprint: "f-" + address + string(effect),
			Place:   plan.Place{File: "infra/main.tf", Line: 4, Column: 7, EndLine: 4, EndColumn: 25, Exact: true, Calls: []plan.Call{{File: "infra/root.tf", Line: 9}}},
			Excerpt: []review.Line{{Number: 4, Text: `    { cidr = "0.0.0.0/0" }`, From: 7, To: 25}},
		}
	}
	waived := finding(sandbox.Waived, "sandboxio_template.d")
	waived.Waiver = &sandbox.Waiver{ID: "w1", Reason: "the database moves in May", Owner: "team-a", Expires: time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC), Effect: sandbox.Deny, Origin: "acme"}
	known := finding(sandbox.Deny, "sandboxio_template.e")
	known.Known = true
	same := finding(sandbox.Warn, "sandboxio_template.f")
	same.Unchanged = true
	hostile := finding(sandbox.Deny, "sandboxio_template.h[\"\x1b[31m\n::error::x<b>|`@me\"]")
	hostile.Message, hostile.Place, hostile.Excerpt = "<script>alert(1)</script> | ::set-output\r\n::error::x \u202e %0A", plan.Place{File: "a b/ü,:%.tf", Line: 1, Column: 1, EndLine: 3, EndColumn: 2}, nil
	settings := review.Finding{Finding: sandbox.Finding{Rule: "SBX-POL-001", Title: "The rules are enforced as they stand", Severity: "medium", Effect: sandbox.Warn, Message: "the mode is advise", Path: "policy.mode"}, Attribute: "policy.mode", Fingerprint: "s"}
	return &review.Report{
		Decision: sandbox.Deny, Policy: "sha256:1", Seen: plan.Seen{Judged: 7, Known: 7, Changes: 9, Deleted: 1, Notes: []string{"the plan is not complete"}},
		Rules: []policy.RuleInfo{
			{ID: "SBX-NET-002", Title: "No allowlist reaches all addresses", Description: "It makes a default of deny meaningless.", Severity: "critical", Effect: "deny", Remediation: "List the networks.", Page: "https://example.com/SBX-NET-002.md", Sources: []policy.Origin{{Document: "NIST", Section: "4.4.2"}}},
			{ID: "SBX-POL-001", Title: "The rules are enforced as they stand", Description: "d", Severity: "medium", Effect: "warn", Remediation: "r"},
		},
		Findings: []review.Finding{
			finding(sandbox.Deny, "sandboxio_template.a"), finding(sandbox.Unknown, "sandboxio_template.b"), finding(sandbox.Failed, "sandboxio_template.c"), waived, known, same, hostile, settings,
		},
	}
}

func TestTextForPeople(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Findings = []review.Finding{r.Findings[0], r.Findings[1], r.Findings[3], r.Findings[4], r.Findings[5], r.Findings[7]}
	const want = `sandboxio_template.a
  deny SBX-NET-002: No allowlist reaches all addresses (critical)
    at infra/main.tf:4:7, called at infra/root.tf:9
        4 |     { cidr = "0.0.0.0/0" }
          |       ^^^^^^^^^^^^^^^^^^
    network_policy.egress[0].cidr: 0.0.0.0/0 is every address there is
    Fix: List the networks.

sandboxio_template.b
  not decided SBX-NET-002
    at infra/main.tf:4:7, called at infra/root.tf:9
        4 |     { cidr = "0.0.0.0/0" }
          |       ^^^^^^^^^^^^^^^^^^
    network_policy.egress[0].cidr: 0.0.0.0/0 is every address there is

sandboxio_template.d
  waived SBX-NET-002: No allowlist reaches all addresses (critical)
    at infra/main.tf:4:7, called at infra/root.tf:9
        4 |     { cidr = "0.0.0.0/0" }
          |       ^^^^^^^^^^^^^^^^^^
    network_policy.egress[0].cidr: 0.0.0.0/0 is every address there is
    waived by "w1" of team-a until 2026-12-24T00:00:00Z: the database moves in May

sandboxio_template.f
  warn SBX-NET-002: No allowlist reaches all addresses (critical)
    at infra/main.tf:4:7, called at infra/root.tf:9
        4 |     { cidr = "0.0.0.0/0" }
          |       ^^^^^^^^^^^^^^^^^^
    network_policy.egress[0].cidr: 0.0.0.0/0 is every address there is
    The object exists and does not change, so this denies nothing yet.
    Fix: List the networks.

the policy's own settings
  warn SBX-POL-001: The rules are enforced as they stand (medium)
    policy.mode: the mode is advise

Note: the plan is not complete
Note: 1 resource only go away, which is not judged
deny: 7 resources judged by 2 rules, 1 denied, 1 not decided, 2 warned of, 1 waived, 1 known before
`
	if d := cmp.Diff(want, formats(t, r)["text"]); d != "" {
		t.Error(d)
	}
	var b bytes.Buffer
	if err := r.Text(&b, review.Colours); err != nil || !strings.Contains(b.String(), "\x1b[31mdeny\x1b[0m SBX-NET-002") {
		t.Errorf("%v %q", err, b.String())
	}
}

func TestSARIFIsValidAndSuppressesWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	text := formats(t, sample())["sarif"]
	checkSARIF(t, text)
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct {
						ID         string
						Properties map[string]any
						Help       struct{ Markdown string }
					}
				}
			}
			Results []struct {
				RuleID       string
				RuleIndex    int
				Level        string
				Prints       map[string]string `json:"partialFingerprints"`
				Suppressions []struct{ Kind, Status, Justification string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if rule := run.Tool.Driver.Rules[0]; rule.ID != "SBX-NET-002" || rule.Properties["security-severity"] != "9.5" || !strings.Contains(rule.Help.Markdown, "NIST, 4.4.2") {
		t.Errorf("rule %+v", rule)
	}
	levels, prints := "", map[string]bool{}
	for i, r := range run.Results {
		levels += r.Level + " "
		prints[r.Prints["sandboxio/v1"]] = true
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("result %d has the index of another rule", i)
		}
	}
	if levels != "error note error error error warning error warning " || len(prints) != len(run.Results) {
		t.Errorf("levels %s, fingerprints %v", levels, prints)
	}
	if s := run.Results[3].Suppressions; len(s) != 1 || s[0].Kind != "external" || !strings.Contains(s[0].Justification, "moves in May") {
		t.Errorf("waived: %+v", s)
	}
	if s := run.Results[4].Suppressions; len(s) != 1 || s[0].Justification != "in the baseline" {
		t.Errorf("known: %+v", s)
	}
}

func TestJUnitCountsWhatFails(t *testing.T) {
	t.Parallel()
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name string `xml:"name,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(formats(t, sample())["junit"]), &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Tests != 10 || suites.Failures != 2 || suites.Errors != 1 || suites.Skipped != 4 || len(suites.Suites) != 9 {
		t.Errorf("got %+v", suites)
	}
}

func TestAnnotationsAreOneLineEach(t *testing.T) {
	t.Parallel()
	text := formats(t, sample())["github"]
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines:\n%s", len(lines), text)
	}
	if want := "::error file=infra/main.tf,line=4,endLine=4,col=7,endColumn=25,title=SBX-NET-002%3A No allowlist reaches all addresses::sandboxio_template.a: network_policy.egress[0].cidr: 0.0.0.0/0 is every address there is. Fix: List the networks."; lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	if !strings.HasPrefix(lines[4], "::error file=a b/ü%2C%3A%25.tf,line=1,endLine=3,title=") {
		t.Errorf("got %s", lines[4])
	}
	for _, l := range lines[:7] {
		if strings.Count(l, "\x1b")+strings.Count(l, "\u202e") > 0 || !strings.HasPrefix(l, "::") {
			t.Errorf("got %q", l)
		}
	}
}

func TestAMarkdownCommentFitsAndIsNoMarkup(t *testing.T) {
	t.Parallel()
	r := sample()
	text := formats(t, r)["markdown"]
	if !strings.HasPrefix(text, review.Marker) || strings.Contains(text, "<script>") || strings.Contains(text, "@me") && !strings.Contains(text, "`") {
		t.Errorf("got %s", text)
	}
	for _, want := range []string{"#### Denied (3)", "<details><summary>Not decided before apply (1)", "1 finding waived, 1 in the baseline", "[SBX-NET-002](https://example.com/SBX-NET-002.md)", "`infra/main.tf:4`"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing from %s", want, text)
		}
	}
	for i := range 3000 {
		f := r.Findings[0]
		f.Address = fmt.Sprintf("sandboxio_template.many[%d]", i)
		r.Findings = append(r.Findings, f)
	}
	text = formats(t, r)["markdown"]
	if len(text) > 65000 || !strings.Contains(text, "more are not shown") {
		t.Errorf("%d bytes", len(text))
	}
}

func TestAJSONReportIsTheNextBaseline(t *testing.T) {
	t.Parallel()
	known, err := review.ReadBaseline(strings.NewReader(formats(t, sample())["json"]))
	if err != nil || len(known) != 5 || !known["s"] {
		t.Errorf("%v, %v", known, err)
	}
	for _, bad := range []string{"", "{}", `{"schema":"other","findings":[]}`, "[]"} {
		if _, err := review.ReadBaseline(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a report", bad)
		}
	}
}

func TestSeveritiesAreOrdered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		severity, floor string
		want            bool
	}{{"critical", "high", true}, {"high", "high", true}, {"medium", "high", false}, {"nobody knows", "critical", true}} {
		if got := review.AtLeast(c.severity, c.floor); got != c.want {
			t.Errorf("%s against %s: %v", c.severity, c.floor, got)
		}
	}
}
