package cli

import (
	"strings"
	"unicode"
)

// ascii keeps a host's name from acting on a terminal, and from looking like
// another one.
func ascii(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// printable is a text that anybody can have written, a label say, without what
// acts on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
