package redact

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// A character is one way to read the beginning of a text.
type character struct {
	r      rune
	raw    bool // r is a byte, which may be part of a rune
	length int  // of its writing
}

const (
	deepest     = 8   // backslashes before a character: one escaped three times has seven
	longestUnit = 128 // bytes; no character's writing has more
)

// special are the bytes with which something else than themselves can begin.
var special = [256]bool{'%': true, '\\': true, '&': true, '+': true, '\'': true, '\r': true, '\n': true, 0xEF: true}

// unfinished tells whether more text could turn what s begins with into
// another character. Only the last byte of an escape can be other than these.
func unfinished(s []byte) bool {
	switch s[0] {
	case '%', '\\', '&', '\'', 0xEF:
	default:
		return false
	}
	if len(s) >= longestUnit {
		return false
	}
	for _, b := range s[1:] {
		if b < utf8.RuneSelf && !alnum(b) && bytes.IndexByte([]byte(`%\&#;'"`), b) < 0 {
			return false
		}
	}
	return true
}

// characters appends every way to read the beginning of s, which is not empty.
func characters(to []character, s []byte) []character {
	to = append(to, character{rune(s[0]), true, 1})
	switch s[0] {
	case '+':
		to = append(to, character{' ', true, 1})
	case '\'': // closes the quotes of a shell, gives one, opens them again
		for _, q := range []string{`'\''`, `'"'"'`} {
			if bytes.HasPrefix(s, []byte(q)) {
				to = append(to, character{'\'', true, len(q)})
			}
		}
	case 0xEF:
		if bytes.HasPrefix(s, []byte("\uFFFD")) {
			to = append(to, character{utf8.RuneError, false, 3})
		}
	case '%':
		to = entity(percent(backslash(to, s), s, 0), s, 0)
	case '&':
		to = entity(to, s, 0)
	case '\\':
		to = entity(backslash(to, s), s, 0)
	}
	return to
}

// percent reads what is written as in a URL from s[n] on, up to four times
// over: "%41", "%2541".
func percent(to []character, s []byte, n int) []character {
	if n == len(s) || s[n] != '%' {
		return to
	}
	for range 4 {
		v := number(s, n+1, 2, 16)
		if v < 0 {
			return to
		}
		to = append(to, character{rune(v), true, n + 3})
		if v != '%' {
			return to
		}
		n += 2
	}
	return to
}

var entities = []struct {
	name string
	r    rune
}{{"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}, {"quot;", '"'}, {"apos;", '\''}}

// entity reads what is written as in HTML from s[n] on, up to three times over
// and with its & as JSON and URLs write it: "&#233;", "&lt;", "&amp;lt;",
// "\u0026lt;".
func entity(to []character, s []byte, n int) []character {
	start := n
	for _, amp := range []string{"&", `\u0026`, "%26"} {
		if bytes.HasPrefix(s[n:], []byte(amp)) {
			n += len(amp)
			break
		}
	}
	if n == start {
		return to
	}
	for range 3 {
		for _, e := range entities {
			if bytes.HasPrefix(s[n:], []byte(e.name)) {
				to = append(to, character{e.r, false, n + len(e.name)})
			}
		}
		if digits, ok := bytes.CutPrefix(s[n:], []byte("#")); ok {
			base := 10
			if len(digits) > 0 && digits[0]|0x20 == 'x' {
				base, digits = 16, digits[1:]
			}
			end := bytes.IndexByte(digits[:min(len(digits), 9)], ';')
			if v := number(digits, 0, end, base); end > 0 && v >= 0 {
				to = append(to, character{rune(v), false, len(s) - len(digits) + end + 1})
			}
		}
		if !bytes.HasPrefix(s[n:], []byte("amp;")) {
			return to
		}
		n += len("amp;")
	}
	return to
}

var letters = [256]byte{'a': '\a', 'b': '\b', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// backslash reads what stands behind backslashes, which may themselves be
// escaped for a URL: `\n`, `\\"`, `\u003c`, `\xff`, `%5Cn`. Backslashes that
// stand for themselves are [pattern.slashes].
func backslash(to []character, s []byte) []character {
	n := 0
	for range deepest {
		width := slash(s[n:])
		if width == 0 {
			return to
		}
		n += width
		if n == len(s) {
			return to
		}
		b := s[n]
		if l := letters[b]; l != 0 {
			to = append(to, character{rune(l), true, n + 1})
		}
		switch {
		case b == 'x':
			to = coded(to, s, n+1, 2, 16, true)
		case b == 'u':
			to = surrogates(coded(to, s, n+1, 4, 16, false), s, n)
		case b == 'U':
			to = coded(to, s, n+1, 8, 16, false)
		case '0' <= b && b <= '7':
			to = coded(to, s, n, 3, 8, true)
			if b == '0' {
				to = append(to, character{0, true, n + 1})
			}
		case b < utf8.RuneSelf && !alnum(b) && slash(s[n:]) == 0:
			to = entity(percent(append(to, character{rune(b), true, n + 1}), s, n), s, n)
		}
	}
	return to
}

// coded reads a character by its number, digits long, at s[n].
func coded(to []character, s []byte, n, digits, base int, raw bool) []character {
	if v := number(s, n, digits, base); v >= 0 && (!raw || v <= 0xFF) {
		to = append(to, character{rune(v), raw, n + digits})
	}
	return to
}

// surrogates reads what JSON writes in two halves, beyond the basic plane; the
// first one's u is at n.
func surrogates(to []character, s []byte, n int) []character {
	high := number(s, n+1, 4, 16)
	if high < 0xD800 || high >= 0xDC00 {
		return to
	}
	n += 5
	for range deepest {
		if n >= len(s) {
			return to
		}
		width := slash(s[n:])
		if width == 0 {
			return to
		}
		n += width
		if n < len(s) && s[n] == 'u' {
			if r := utf16.DecodeRune(rune(high), rune(number(s, n+1, 4, 16))); r != utf8.RuneError {
				to = append(to, character{r, false, n + 5})
			}
			return to
		}
	}
	return to
}

// slash gives the width of a backslash at the beginning of s, zero if there is
// none.
func slash(s []byte) int {
	if len(s) > 0 && s[0] == '\\' {
		return 1
	}
	for _, w := range []string{"%5c", "%5C", "%255c", "%255C"} {
		if bytes.HasPrefix(s, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// number reads exactly digits digits of s from at on; -1 if they are not there
// or make no rune.
func number(s []byte, at, digits, base int) int {
	if digits <= 0 || at+digits > len(s) {
		return -1
	}
	n := 0
	for _, b := range s[at : at+digits] {
		d := base
		switch {
		case '0' <= b && b <= '9':
			d = int(b - '0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			d = int(b|0x20-'a') + 10
		}
		if d >= base {
			return -1
		}
		if n = n*base + d; n > utf8.MaxRune {
			return -1
		}
	}
	return n
}

func alnum(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
