package codes

import (
	"fmt"
	"io"
	"strings"
)

const madeBy = "<!-- Made from internal/codes by: make generate -->\n\n"

// page is docs/errors/<code>.md.
func (e Entry) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s: %s\n\n%s\n\n## Usual causes\n\n", madeBy, e.Code, e.Title, e.Meaning)
	for _, c := range e.Causes {
		fmt.Fprintf(&b, "- %s\n", c)
	}
	b.WriteString("\n## What to do\n\n")
	for i, s := range e.Steps {
		fmt.Fprintf(&b, "%d. %s", i+1, s.Text)
		if s.Command != "" {
			fmt.Fprintf(&b, "\n\n   ```sh\n   %s\n   ```\n", s.Command)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nTry again: %s.\n\n## As it looks\n\n```text\nerror: %s\n", e.Retry, e.Example.Error)
	if e.Example.Fix != "" {
		fmt.Fprintf(&b, "  fix: %s\n", e.Example.Fix)
	}
	fmt.Fprintf(&b, "```\n\nIn Go: `errors.Is(err, %s)`.\n", e.goName())
	return strings.ReplaceAll(b.String(), "\n\n\n", "\n\n")
}

// goName is the constant of the code in package sandbox.
func (e Entry) goName() string {
	var b strings.Builder
	b.WriteString("sandbox.Code")
	for part := range strings.SplitSeq(string(e.Code), "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// index is docs/errors/README.md.
func index() string {
	var b strings.Builder
	b.WriteString(madeBy + `# Error codes

Every error has one of these codes: in Go, ` + "`errors.Is(err, sandbox.CodeGone)`" + ` or ` + "`sandbox.CodeOf(err)`" + `; on the command line, in
the error's text; in audit records, as ` + "`code`" + `; in traces, as ` + "`error.type`" + `. Codes are never renamed. ` + "`sandboxio explain CODE`" + `
prints the same pages.

| code | | try again |
|---|---|---|
`)
	for _, e := range All() {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", e.Code, e.Code, e.Title, e.Retry)
	}
	b.WriteString(`
The end of the caller's own context is no code of ours: it stays ` + "`context.Canceled`" + ` or ` + "`context.DeadlineExceeded`" + `. Records, which
are text, call it ` + "`canceled`" + ` and ` + "`deadline-exceeded`" + `. A program that ended with another status than 0 is none either: that is a
` + "`*sandbox.ExitError`" + `, of which ` + "`sandbox.CodeOf`" + ` says ` + "`\"\"`" + `.

With ` + "`--json`" + ` a command that fails before it has a result prints ` + "`{\"schema\": \"sandboxio.error/v1\", \"errors\": […]}`" + ` on standard
output, each error with its ` + "`code`, `op`, `backend`, `sandbox`, `field`, `message` and `fix`" + ` where it has one, and the same as text on
standard error. One that has printed its result, as ` + "`sandboxio doctor`" + ` has, prints nothing more there.
`)
	return b.String()
}

// Print writes the entry for a terminal; bold and plain switch its headings.
func (e Entry) Print(w io.Writer, bold, plain string) {
	fmt.Fprintf(w, "%s%s: %s%s\n\n%s\n\n%sUsual causes%s\n", bold, e.Code, e.Title, plain, fold(e.Meaning, ""), bold, plain)
	for _, c := range e.Causes {
		fmt.Fprintf(w, "  - %s\n", fold(c, "    "))
	}
	fmt.Fprintf(w, "\n%sWhat to do%s\n", bold, plain)
	for i, s := range e.Steps {
		fmt.Fprintf(w, "  %d. %s\n", i+1, fold(s.Text, "     "))
		if s.Command != "" {
			fmt.Fprintf(w, "     $ %s\n", s.Command)
		}
	}
	fmt.Fprintf(w, "\n%sTry again%s\n  %s\n\n%sAs it looks%s\n  error: %s\n", bold, plain, e.Retry, bold, plain, e.Example.Error)
	if e.Example.Fix != "" {
		fmt.Fprintf(w, "    fix: %s\n", e.Example.Fix)
	}
}

// width is how long lines of text are, in bytes.
const width = 78

// fold breaks text into lines, all but the first behind indent.
func fold(text, indent string) string {
	var b strings.Builder
	at := len(indent)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
