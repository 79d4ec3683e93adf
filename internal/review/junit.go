package review

import (
	"cmp"
	"encoding/xml"
	"io"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Error   *junitFailure `xml:"error,omitempty"`
		Skipped *junitFailure `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a test suite for each resource with findings, a test case for
// each finding, and one case that stands for all that was found good. What
// only warns passes, with the warning as its output; what is not decided, and
// what was not judged, is skipped.
func (r *Report) JUnit(w io.Writer) error {
	all := junitSuites{Name: "sandboxio policy check"}
	summary := junitSuite{Name: "sandboxio", Cases: []junitCase{{Name: r.Summary(), Class: "sandboxio"}}}
	for _, n := range r.Seen.Remarks() {
		summary.Cases = append(summary.Cases, junitCase{Name: line(n), Class: "sandboxio", Skipped: &junitFailure{Message: line(n)}})
		summary.Skipped++
	}
	all.Suites = append(all.Suites, summary)
	for _, f := range r.Findings {
		if n := len(all.Suites); n == 1 || all.Suites[n-1].Name != f.suite() {
			all.Suites = append(all.Suites, junitSuite{Name: f.suite()})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: f.Rule + " " + line(f.Title), Class: f.suite(), File: f.Place.File, Line: f.Place.Line}
		if f.Attribute != "" {
			c.Name += " [" + line(f.Attribute) + "]"
		}
		said := &junitFailure{Message: line(f.Message), Type: f.Severity, Text: strings.TrimSpace(sentence(f) + "\n" + f.at())}
		switch {
		case f.Known:
			c.Skipped = &junitFailure{Message: "in the baseline: " + line(f.Message)}
			s.Skipped++
		case f.Waiver != nil:
			c.Skipped = &junitFailure{Message: line(f.Waiver.String())}
			s.Skipped++
		case f.Effect == sandbox.Failed:
			c.Error = said
			s.Errors++
		case f.Effect == sandbox.Deny:
			c.Failure = said
			s.Failures++
		case f.Effect == sandbox.Unknown:
			c.Skipped = &junitFailure{Message: line(f.Message)}
			s.Skipped++
		default:
			c.Out = said.Text
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		s.Tests = len(s.Cases)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (f Finding) suite() string { return cmp.Or(line(f.Address), "the policy's own settings") }
