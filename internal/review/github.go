package review

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// GitHub writes workflow commands, which GitHub shows on the lines of a pull
// request.
func (r *Report) GitHub(to io.Writer) error {
	w := bufio.NewWriter(to)
	for _, f := range r.Findings {
		if !f.Counts() {
			continue
		}
		level := "warning"
		switch f.Effect {
		case sandbox.Deny, sandbox.Failed:
			level = "error"
		case sandbox.Unknown:
			level = "notice"
		case sandbox.Warn, sandbox.Waived, sandbox.Allow:
		}
		at := ""
		if p := f.Place; p.File != "" {
			at = fmt.Sprintf("file=%s,line=%d,endLine=%d,", property(p.File), p.Line, p.EndLine)
			if p.Line == p.EndLine { // columns of several lines are refused
				at += fmt.Sprintf("col=%d,endColumn=%d,", p.Column, p.EndColumn)
			}
		}
		fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, at, property(f.Rule+": "+line(f.Title)), data(strings.TrimPrefix(line(f.Address)+": ", ": ")+sentence(f)))
	}
	for _, n := range r.Seen.Remarks() {
		fmt.Fprintf(w, "::notice title=sandboxio::%s\n", data(line(n)))
	}
	fmt.Fprintf(w, "%s\n", data(r.Summary()))
	return w.Flush()
}

var escapeData = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
var escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")

func data(s string) string     { return escapeData.Replace(printable(s)) }
func property(s string) string { return escapeProperty.Replace(printable(s)) }
