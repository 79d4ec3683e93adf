package review

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Text writes the report for people, by resource.
func (r *Report) Text(to io.Writer, s Style) error {
	w := bufio.NewWriter(to)
	last, told := "\x00", map[int]bool{}
	for i, f := range r.Findings {
		if f.Known {
			continue
		}
		if f.Address != last {
			if last != "\x00" {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s%s%s\n", s.Bold, cmp.Or(line(f.Address), "the policy's own settings"), s.Plain)
			last = f.Address
		}
		if f.Effect == sandbox.Unknown {
			if told[i] {
				continue
			}
			var rules []string // that wait for the same value are told together
			for j := i; j < len(r.Findings) && r.Findings[j].Address == f.Address; j++ {
				if next := r.Findings[j]; sameWait(f, next) {
					told[j] = true
					if !slices.Contains(rules, next.Rule) {
						rules = append(rules, next.Rule)
					}
				}
			}
			f.Rule, f.Title = strings.Join(rules, ", "), ""
		}
		f.text(w, s)
	}
	if last != "\x00" {
		fmt.Fprintln(w)
	}
	for _, n := range r.Seen.Remarks() {
		fmt.Fprintf(w, "Note: %s\n", line(n))
	}
	if r.Seen.Deleted > 0 {
		fmt.Fprintf(w, "Note: %s only go away, which is not judged\n", count(r.Seen.Deleted, "resource"))
	}
	fmt.Fprintf(w, "%s%s%s\n", s.Bold, r.Summary(), s.Plain)
	return w.Flush()
}

func sameWait(a, b Finding) bool {
	return b.Effect == sandbox.Unknown && !b.Known && a.Attribute == b.Attribute && a.Message == b.Message
}

func (f Finding) text(w io.Writer, s Style) {
	colour, word := s.Yellow, string(f.Effect)
	if f.Effect == sandbox.Deny || f.Effect == sandbox.Failed {
		colour = s.Red
	}
	if f.Effect == sandbox.Unknown {
		word = "not decided"
	}
	fmt.Fprintf(w, "  %s%s%s %s", colour, word, s.Plain, f.Rule)
	if f.Title != "" {
		fmt.Fprintf(w, ": %s (%s)", line(f.Title), f.Severity)
	}
	fmt.Fprintln(w)
	if at := f.at(); at != "" {
		fmt.Fprintf(w, "    at %s\n", at)
	}
	for _, l := range f.Excerpt {
		fmt.Fprintf(w, "    %5d | %s\n", l.Number, printable(strings.ReplaceAll(l.Text, "\t", "  ")))
		if l.From > 0 && l.To > l.From && !strings.ContainsRune(l.Text, '\t') {
			fmt.Fprintf(w, "          | %s%s\n", strings.Repeat(" ", l.From-1), strings.Repeat("^", l.To-l.From))
		}
	}
	if f.Attribute != "" {
		fmt.Fprintf(w, "    %s: %s\n", line(f.Attribute), line(f.Message))
	} else {
		fmt.Fprintf(w, "    %s\n", line(f.Message))
	}
	if f.Unchanged {
		fmt.Fprintf(w, "    The object exists and does not change, so this denies nothing yet.\n")
	}
	if f.Waiver != nil {
		fmt.Fprintf(w, "    %s\n", line(f.Waiver.String()))
		return
	}
	if f.Remediation != "" && f.Effect != sandbox.Unknown {
		fmt.Fprintf(w, "    Fix: %s\n", line(f.Remediation))
	}
}

// at is the place, and how the module was reached.
func (f Finding) at() string {
	if f.Place.File == "" {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s:%d:%d", line(f.Place.File), f.Place.Line, f.Place.Column)
	if !f.Place.Exact {
		s.WriteString(" (nearest)")
	}
	for _, c := range slices.Backward(f.Place.Calls) {
		fmt.Fprintf(&s, ", called at %s:%d", line(c.File), c.Line)
	}
	return s.String()
}
