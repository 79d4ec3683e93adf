package review

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// header is the first line of a block with nothing of its content.
var header = regexp.MustCompile(`^\s*(?:resource|provider|module|dynamic)[ "\w-]*\{\s*$`)

// hidden stands for a text of the source that is not shown.
const hidden = "(hidden)"

// private are attributes that hold whatever their author put there.
var private = []string{"env", "environment", "command", "args", "entrypoint", "start", "upload", "secrets_wo"}

// excerpt is the line at a finding's place, without what must not be shown: a
// reviewer sees which line it is, and not what a secret on it says.
func excerpt(p *plan.Plan, item plan.Item, f Finding) []Line {
	text, ok := p.Line(f.Place, f.Place.Line)
	if !ok {
		return nil
	}
	all := strings.HasPrefix(f.Rule, "SBX-SEC-") || slices.ContainsFunc(private, func(w string) bool {
		return slices.Contains(strings.FieldsFunc(f.Attribute, func(c rune) bool { return strings.ContainsRune(".[]\"", c) }), w)
	})
	if header.MatchString(text) {
		all = false // nobody's text but its type and name
	}
	shown := item.Redact(mask(text, all))
	l := Line{Number: f.Place.Line, Text: shown}
	if shown == text && f.Place.EndLine == f.Place.Line {
		l.From, l.To = f.Place.Column, f.Place.EndColumn
	}
	return []Line{l.short()}
}

// widest is what a line of an excerpt may have.
const widest = 140

// short is the line's part around what is marked.
func (l Line) short() Line {
	runes := []rune(l.Text)
	if len(runes) <= widest {
		return l
	}
	begin := 0
	if l.From > widest/2 {
		begin = l.From - widest/2
	}
	end := min(len(runes), begin+widest)
	l.Text = string(runes[begin:end])
	if end < len(runes) {
		l.Text += "…"
	}
	if begin > 0 {
		l.Text = "…" + l.Text
		begin--
	}
	if l.From > 0 {
		l.From, l.To = l.From-begin, min(l.To-begin, len([]rune(l.Text))+1)
	}
	return l
}

// mask hides quoted texts: every one, or those that look like a credential.
// With all, a line without quotes, as in a heredoc, is hidden whole.
func mask(line string, all bool) string {
	var b strings.Builder
	quotes := 0
	for rest := line; rest != ""; {
		open := strings.IndexByte(rest, '"')
		if open < 0 {
			b.WriteString(bare(rest))
			break
		}
		b.WriteString(bare(rest[:open]))
		quotes++
		end := closing(rest[open+1:])
		content := rest[open+1:][:end]
		after := rest[min(len(rest), open+1+end+1):]
		// A quoted key of an object is a name.
		isKey := strings.HasPrefix(strings.TrimLeft(after, " \t"), "=") || strings.HasPrefix(strings.TrimLeft(after, " \t"), ":")
		if (all && !isKey) || policy.LooksSecret(content) {
			content = hidden
		}
		b.WriteString(`"` + content + `"`)
		rest = after
	}
	if all && quotes == 0 && strings.TrimSpace(line) != "" && !strings.ContainsAny(line, "={[") {
		return hidden
	}
	return b.String()
}

// bare hides words outside of quotes, as in a comment, that look like a
// credential.
func bare(s string) string {
	for w := range strings.FieldsSeq(s) {
		if policy.LooksSecret(w) {
			s = strings.ReplaceAll(s, w, hidden)
		}
	}
	return s
}

// closing is where a quoted text ends.
func closing(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s)
}
