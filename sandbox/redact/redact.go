// Package redact is the only code that takes secrets out of text.
//
// It replaces each value, and the forms it takes when it is quoted on the way
// (base64, URL and JSON escapes), by "[secret]". It is for text that is meant
// for people: errors, records, logs. A program's output is never touched.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mark is what a secret becomes.
const Mark = "[secret]"

// MinLength is the shortest value that is looked for. Shorter ones would
// redact ordinary words, and are no secrets.
const MinLength = 4

// A Redactor knows a set of values. Its zero value knows none. It is
// immutable and safe for concurrent use.
type Redactor struct{ r *strings.Replacer }

// New makes a Redactor for values.
func New(values ...string) Redactor {
	var forms []string
	for _, v := range trimmed(values) {
		if len(v) < MinLength {
			continue
		}
		forms = append(forms, v, url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
		forms = append(forms, base64Forms(v)...)
		if q, err := json.Marshal(v); err == nil {
			forms = append(forms, string(q[1:len(q)-1]))
		}
		for _, q := range []string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
			forms = append(forms, q[1:len(q)-1])
		}
		// Lines of a value with several (a PEM key) travel alone as well.
		for line := range strings.Lines(v) {
			if line = strings.TrimRight(line, "\r\n"); len(line) >= 16 {
				forms = append(forms, line)
			}
		}
	}
	// A replacer takes the first pair that matches: longest first, so that no
	// form is cut by a shorter one.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	forms = slices.Compact(forms)
	if len(forms) == 0 {
		return Redactor{}
	}
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, Mark)
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// trimmed adds what is left of each value without the white space around it: a
// secret that was read from a file ends with a line end, and programs drop it.
func trimmed(values []string) []string {
	out := slices.Clone(values)
	for _, v := range values {
		if t := strings.TrimSpace(v); t != v {
			out = append(out, t)
		}
	}
	return out
}

// base64Forms are the encodings of v alone and, since v may stand anywhere in
// what was encoded, the characters that are v's own at each of the three
// alignments.
func base64Forms(v string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			s := enc.EncodeToString(append(make([]byte, shift), v...))
			from := (shift*8 + 5) / 6 // the first character that holds bits of v only
			to := (shift + len(v)) * 8 / 6
			if to-from >= MinLength {
				out = append(out, s[from:to])
			}
		}
	}
	return out
}

// String takes the secrets out of s.
func (r Redactor) String(s string) string {
	if r.r == nil {
		return s
	}
	return r.r.Replace(s)
}

// Has reports whether s contains a secret in any form.
func (r Redactor) Has(s string) bool { return r.String(s) != s }
