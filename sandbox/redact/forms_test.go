package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// writing is one way to write a text, all of it.
type writing struct {
	name  string
	write func(string) string
}

func jsonText(escape bool) func(string) string {
	return func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escape)
		if err := e.Encode(s); err != nil {
			panic(err)
		}
		return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
	}
}

func eachByte(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

func unquoted(quote func(string) string) func(string) string {
	return func(s string) string { q := quote(s); return q[1 : len(q)-1] }
}

func after(outer, inner func(string) string) func(string) string {
	return func(s string) string { return outer(inner(s)) }
}

func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range jsonText(true)(s) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func lower(escape func(string) string) func(string) string {
	return func(s string) string {
		b := []byte(escape(s))
		for i := range b {
			if b[i] == '%' {
				copy(b[i:], bytes.ToLower(b[i:i+3]))
			}
		}
		return string(b)
	}
}

// writings are those of which not one byte may be left.
var allWritings = []writing{
	{"plain", func(s string) string { return s }},
	{"query escape", url.QueryEscape},
	{"path escape", url.PathEscape},
	{"query escape in lower case", lower(url.QueryEscape)},
	{"percent for every byte", eachByte("%%%02X")},
	{"JSON", jsonText(false)},
	{"JSON for HTML", jsonText(true)},
	{"JSON in ASCII", asciiJSON},
	{"Go quoting", unquoted(strconv.Quote)},
	{"Go quoting in ASCII", unquoted(strconv.QuoteToASCII)},
	{"C hexadecimal", eachByte(`\x%02x`)},
	{"C octal", eachByte(`\%03o`)},
	{"HTML", html.EscapeString},
	{"shell quoting", func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }},
	{"shell quoting with double quotes", func(s string) string { return strings.ReplaceAll(s, "'", `'"'"'`) }},
	{"JSON in JSON", after(jsonText(true), jsonText(true))},
	{"JSON in JSON in JSON", after(jsonText(false), after(jsonText(true), jsonText(false)))},
	{"query escape twice", after(url.QueryEscape, url.PathEscape)},
	{"query escape in JSON", after(jsonText(true), url.QueryEscape)},
	{"JSON in a query", after(url.QueryEscape, jsonText(true))},
	{"HTML in JSON", after(jsonText(true), html.EscapeString)},
	{"HTML in HTML", after(html.EscapeString, html.EscapeString)},
	{"Go quoting of JSON", after(unquoted(strconv.Quote), jsonText(true))},
	{"hexadecimal", func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"hexadecimal in upper case", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
	{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{"base64 without padding", func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) }},
	{"base64 for URLs", func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }},
	{"base64 for URLs without padding", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
	{"base64 in a query", func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) }},
	{"base64 in lines", func(s string) string { return broken(base64.StdEncoding.EncodeToString([]byte(s)), 76, "\n") }},
	{"base64 in mail's lines", func(s string) string { return broken(base64.StdEncoding.EncodeToString([]byte(s)), 64, "\r\n") }},
}

func broken(s string, width int, line string) string {
	var parts []string
	for len(s) > width {
		parts, s = append(parts, s[:width]), s[width:]
	}
	return strings.Join(append(parts, s), line)
}

func TestEveryWritingOfASecretBecomesOneMark(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"hunter2hunter2", "s3cr=t/va+lue \"x\"\n", "<a href='x'>&amp;</a>", `C:\new\"table"`, `\\\\n\`, "pässwörd-€-😀", "nul\x00bell\x07esc\x1b",
		"\xff\xfebytes\x80", "%41%2541", "tab\tcr\rlf\n.", strings.Repeat("0123456789abcdef", 20), "\u2028<>&\u200b",
	}
	// Characters that are read in many ways must not be so in ever more.
	for _, unit := range []string{"'", "%", "&", `\`, "\n", `\n`, "%5C", "&amp;", `\'`, `'\''`, `\u0026amp;`, "+ ", "\xef", "\uFFFD"} {
		secrets = append(secrets, strings.Repeat(unit, 32/len(unit)))
	}
	for _, secret := range secrets {
		r := New("another", secret)
		for _, w := range allWritings {
			in := w.write(secret)
			if got := r.String(in); got != Mark {
				t.Errorf("%q as %s, %q, became %q", secret, w.name, in, got)
			}
			if got := r.String("x " + in + " y"); got != "x "+Mark+" y" {
				t.Errorf("%q as %s, within, became %q", secret, w.name, got)
			}
		}
	}
}

// What the encoder was given may begin before the secret and go on after it:
// nothing that only the secret decides may be left.
func TestASecretAmidBase64IsTakenOut(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	r := New(secret)
	for _, before := range []string{"", "u", "us", "use", "user:"} {
		for _, behind := range []string{"", "1", "12", "123"} {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				in := enc.EncodeToString([]byte(before + secret + behind))
				out := r.String(in)
				if kept := len(out) - len(Mark); !strings.Contains(out, Mark) || kept > (len(before)+2)*4/3+(len(behind)+2)*4/3+2 {
					t.Errorf("%q became %q", in, out)
				}
			}
		}
	}
}

func TestOverlappingSecretsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		values         []string
	}{
		{"one goes on where the other ends", "xabcdefghijklx", "x[secret]x", []string{"abcdefgh", "efghijkl"}},
		{"one is within the other", "xabcdefghx", "x[secret]x", []string{"abcdefgh", "cdef"}},
		{"one follows the other", "abcdefgh", "[secret][secret]", []string{"abcd", "efgh"}},
		{"one begins like the other and is not there", "abcdef", "[secret]ef", []string{"abcd", "abcdeg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := New(c.values...).String(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	r := New("hunter2hunter2", "p%4&\\'")
	for _, in := range []string{
		"", "50% of \\n lines & more", "https://x/?q=%41&r=%2541", `{"a":"\u003c\\n"}`, "hunter2hunter", "unter2hunter2", "[secret]",
		"a\r\nb\r\n", "it's 'quoted'", "\xff\xfe\uFFFD",
	} {
		if got := r.String(in); got != in || r.Has(in) {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func FuzzString(f *testing.F) {
	f.Add("hunter2hunter2", "a ", " b")
	f.Add("tok_\"\\\n\x00é", "", "x")
	f.Add(`\\\\`, `\`, `\`)
	f.Add("%41%5C&lt;'", "%", "25")
	f.Fuzz(func(t *testing.T, secret, before, behind string) {
		if len(secret) < MinLength || len(secret) > 64 || len(before)+len(behind) > 256 {
			return
		}
		r := New(secret)
		for _, w := range allWritings {
			in := w.write(secret)
			if got := r.String(in); got != Mark {
				t.Errorf("%q as %s, %q, became %q", secret, w.name, in, got)
			}
			out := r.String(before + in + behind)
			if strings.Contains(out, in) && !strings.Contains(before+Mark+behind, in) && !strings.Contains(Mark, in) {
				t.Errorf("%q still holds %q", out, in)
			}
		}
	})
}
