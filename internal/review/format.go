package review

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Style is how text is written to a terminal. The zero value is plain.
type Style struct{ Bold, Red, Yellow, Plain string }

// Colours are the styles of a terminal that wants them.
var Colours = Style{Bold: "\x1b[1m", Red: "\x1b[31m", Yellow: "\x1b[33m", Plain: "\x1b[0m"}

// Writer writes a report in one format.
type Writer func(w io.Writer, r *Report, tool string) error

var writers = map[string]Writer{
	"text":     func(w io.Writer, r *Report, _ string) error { return r.Text(w, Style{}) },
	"json":     func(w io.Writer, r *Report, version string) error { return r.JSON(w) },
	"sarif":    func(w io.Writer, r *Report, version string) error { return r.SARIF(w, version) },
	"junit":    func(w io.Writer, r *Report, _ string) error { return r.JUnit(w) },
	"github":   func(w io.Writer, r *Report, _ string) error { return r.GitHub(w) },
	"markdown": func(w io.Writer, r *Report, _ string) error { return r.Markdown(w) },
}

// Formats are the names of all formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(writers)) }

// Format gives the writer of that name. Code: invalid.
func Format(name string) (Writer, error) {
	if w, ok := writers[name]; ok {
		return w, nil
	}
	return nil, driver.Invalid("format", fmt.Sprintf("%q is no format", name), "use one of "+strings.Join(Formats(), ", "))
}

// printable takes out what would steer a terminal or a log: plans hold text
// that nobody has checked.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' {
			return '�'
		}
		return c
	}, s)
}

// line is printable, and one line.
func line(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }
