// Package redact is the only code that takes secrets out of text.
//
// It replaces each value by "[secret]", however it is written: plain, or with
// any of its bytes escaped as URLs, JSON, HTML, Go, C or a shell escape them,
// needlessly, partly or twice; and its hexadecimal and base64 forms, alone or
// in the midst of what was encoded. Matches that overlap become one mark, so
// that no piece of either is left.
//
// What it does not find: a value that was compressed, encrypted, hashed,
// reversed, cut in two by other text, or put into another case; its bytes
// written one by one as numbers; and base64 or hexadecimal of what was encoded
// before; and a space in a query that was escaped twice.
//
// It is for text that is meant for people: errors, records, logs. Nothing here
// or in package sandbox touches a program's output unasked; who logs that output
// can put it through a [Redactor].
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mark is what a secret becomes.
const Mark = "[secret]"

// MinLength is the shortest value, in bytes, that is looked for. Shorter ones
// would redact ordinary words; package sandbox refuses them as secrets.
const MinLength = 4

// A Redactor knows a set of values. Its zero value knows none. It is
// immutable and safe for concurrent use.
type Redactor struct {
	// A function, since package fmt prints what it cannot call methods on, an
	// unexported field of somebody's struct, as it lies in memory.
	table func() *table
}

// table holds the patterns by their first byte; those that begin with no ASCII
// are together.
type table [utf8.RuneSelf + 1][]pattern

// New makes a Redactor for values.
func New(values ...string) Redactor {
	var all []pattern
	add := func(text string, encoded bool) {
		p := pattern{text, encoded}
		if len(text) >= MinLength && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, v := range values {
		// A secret that was read from a file ends with a line end, and programs
		// drop it.
		for _, v := range []string{v, strings.TrimSpace(v)} {
			if len(v) < MinLength {
				continue
			}
			add(v, false)
			add(hex.EncodeToString([]byte(v)), true)
			add(strings.ToUpper(hex.EncodeToString([]byte(v))), true)
			for _, b := range base64Forms(v) {
				add(b, true)
			}
		}
		// Lines of a value with several (a PEM key) travel alone as well.
		for line := range strings.Lines(v) {
			if line = strings.TrimRight(line, "\r\n"); len(line) >= 16 {
				add(line, false)
			}
		}
	}
	if len(all) == 0 {
		return Redactor{}
	}
	t := new(table)
	for _, p := range all {
		b := bucket(rune(p.text[0]))
		t[b] = append(t[b], p)
	}
	return Redactor{func() *table { return t }}
}

// base64Forms are the encodings of v alone and, since v may stand anywhere in
// what was encoded, the characters that are v's own at each of the three
// alignments.
func base64Forms(v string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		out = append(out, enc.EncodeToString([]byte(v)), enc.WithPadding(base64.NoPadding).EncodeToString([]byte(v)))
		for shift := range 3 {
			s := enc.EncodeToString(append(make([]byte, shift), v...))
			from := (shift*8 + 5) / 6 // the first character that holds bits of v only
			to := (shift + len(v)) * 8 / 6
			out = append(out, s[from:to])
		}
	}
	return out
}

// String takes the secrets out of s.
func (r Redactor) String(s string) string {
	if r.table == nil {
		return s
	}
	out, _, _ := r.table().scan(nil, []byte(s), 0, true)
	return string(out)
}

// Has reports whether s contains a secret in any form.
func (r Redactor) Has(s string) bool { return r.String(s) != s }

// scan appends s without its secrets to out. The first covered bytes of s
// belong to a match whose mark was written before. Unless s is the last of the
// text, it stops where what follows could decide otherwise: it returns how far
// it came, and how many bytes from there on are covered.
func (t *table) scan(out, s []byte, covered int, last bool) (_ []byte, done, left int) {
	plain := covered // where text begins that is neither covered nor copied
	i := 0
	for ; i < len(s); i++ {
		longest, more := t.at(s[i:], last)
		if more {
			break
		}
		if longest == 0 {
			continue
		}
		if i >= plain {
			out = append(append(out, s[plain:i]...), Mark...)
		}
		plain = max(plain, i+longest)
	}
	if plain < i {
		out = append(out, s[plain:i]...)
	}
	return out, i, max(0, plain-i)
}

// at gives the length of the longest secret with which s begins, and whether
// what follows s could make one, or a longer one.
func (t *table) at(s []byte, last bool) (longest int, more bool) {
	if !special[s[0]] {
		for _, p := range t[bucket(rune(s[0]))] {
			// Most of what begins like a secret is none by its second byte.
			if len(s) > 1 && s[1] != p.text[1] && !special[s[1]] {
				continue
			}
			n, undecided := p.match(s, last)
			longest, more = max(longest, n), more || undecided
		}
		return longest, more
	}
	if !last && unfinished(s) {
		return 0, true
	}
	var room [32]character
	for _, c := range characters(room[:0], s) {
		b := bucket(c.r)
		for _, p := range t[b] {
			n, undecided := p.match(s, last)
			longest, more = max(longest, n), more || undecided
		}
	}
	return longest, more
}

func bucket(r rune) int { return int(min(r, utf8.RuneSelf)) }
