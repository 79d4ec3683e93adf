package review

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Marker is in every comment, so that the next review finds and replaces it.
const Marker = "<!-- sandboxio policy check -->"

// largest is what fits into a comment on GitHub, with something to spare.
const largest = 60000

// Markdown writes a comment for a pull request: denials first, each with its
// place and fix; the rest folded. What does not fit is counted.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### sandboxio: %s\n\n%s\n", Marker, r.Decision, code(r.Summary()))
	left := largest - b.Len()
	section := func(title string, folded bool, effects ...sandbox.Decision) {
		n := r.Count(effects...)
		if n == 0 {
			return
		}
		var s strings.Builder
		if folded {
			fmt.Fprintf(&s, "\n<details><summary>%s (%d)</summary>\n", title, n)
		} else {
			fmt.Fprintf(&s, "\n#### %s (%d)\n", title, n)
		}
		s.WriteString("\n| rule | where | what |\n|---|---|---|\n")
		written := 0
		for _, f := range r.Findings {
			if !f.Counts() || !slices.Contains(effects, f.Effect) {
				continue
			}
			row := f.row()
			if s.Len()+len(row) > left-1000 {
				break
			}
			s.WriteString(row)
			written++
		}
		if written < n {
			fmt.Fprintf(&s, "\n%d more are not shown.\n", n-written)
		}
		if folded {
			s.WriteString("\n</details>\n")
		}
		left -= s.Len()
		b.WriteString(s.String())
	}
	section("Denied", false, sandbox.Failed, sandbox.Deny)
	section("Not decided before apply", true, sandbox.Unknown)
	section("Warnings", true, sandbox.Warn)
	if known, waived := r.silent(); known+waived > 0 {
		fmt.Fprintf(&b, "\n%s waived, %d in the baseline.\n", count(waived, "finding"), known)
	}
	for _, n := range r.Seen.Remarks() {
		fmt.Fprintf(&b, "\nNote: %s.\n", cell(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f Finding) row() string {
	rule := cell(f.Rule)
	if f.Page != "" {
		rule = fmt.Sprintf("[%s](%s)", rule, f.Page)
	}
	where := code(cmp.Or(f.Address, "the policy's own settings"))
	if f.Place.File != "" {
		where += fmt.Sprintf("<br>%s", code(fmt.Sprintf("%s:%d", f.Place.File, f.Place.Line)))
	}
	what := cell(f.Title) + " (" + cell(f.Severity) + ")<br>" + cell(sentence(f))
	return fmt.Sprintf("| %s | %s | %s |\n", rule, where, what)
}

// cell is a text that Markdown does not take for anything else.
func cell(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "@", "&#64;", "#", "&#35;", "!", `\!`, "~", `\~`).
		Replace(shorten(line(s)))
}

// code is a text in a code span.
func code(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(shorten(line(s))) + "`"
}

func shorten(s string) string {
	const most = 600
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
