package redact

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// A pattern is one text to look for, in whatever way its characters are
// written.
type pattern struct {
	text    string
	encoded bool // base64 or hexadecimal, which may be broken into lines
}

// A point is how far a match has come: in the pattern and in the text.
type point struct{ at, from int }

func (a point) compare(b point) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.at, b.at))
}

// match gives the length of the longest beginning of s that is p, zero if
// there is none. more tells that text after s, if it is not the last, could
// make one, or a longer one.
//
// A text can be read in several ways (is "\\n" one character, or two?), so all
// are followed. They are taken in the order of the text, and ways that meet are
// one, which bounds the work.
func (p pattern) match(s []byte, last bool) (n int, more bool) {
	var room [16]point
	var read [32]character
	todo := room[:0]
	for next, found := (point{}), true; found; next, found = first(&todo) {
		// Up to where the text could mean more than it says, there is one way.
		for next.at < len(p.text) && next.from < len(s) && s[next.from] == p.text[next.at] && !special[s[next.from]] {
			next.at++
			next.from++
		}
		if next.at == len(p.text) {
			n = max(n, next.from)
			continue
		}
		if next.from == len(s) {
			more = true
			continue
		}
		rest := s[next.from:]
		if !special[rest[0]] {
			continue
		}
		more = more || unfinished(rest)
		for _, c := range characters(read[:0], rest) {
			if c.raw && c.r == '\\' && c.length == slash(rest) {
				continue // it is for slashes
			}
			if size := c.begins(p.text[next.at:]); size > 0 {
				add(&todo, point{next.at + size, next.from + c.length})
			}
		}
		more = p.slashes(&todo, next, rest) || more
		if p.encoded && next.at > 0 {
			line := bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n"))
			switch {
			case len(line) == 0:
				more = true
			case line[0] == p.text[next.at]:
				add(&todo, point{next.at + 1, next.from + len(rest) - len(line) + 1})
			}
		}
	}
	return n, more && !last
}

// slashes follows a run of backslashes in the pattern through one in the text,
// which may be up to eight times as long, and may leave some to the escape that
// comes after it. All that a run can be is one step: taken one by one, long runs
// would meet in too many ways. more tells that rest ends within the run.
func (p pattern) slashes(todo *[]point, from point, rest []byte) (more bool) {
	least := 0
	for from.at+least < len(p.text) && p.text[from.at+least] == '\\' {
		least++
	}
	most, end := 0, 0
	for most < deepest*least {
		width := slash(rest[end:])
		if width == 0 {
			break
		}
		most++
		end += width
	}
	n := 0
	for i := 1; i <= most; i++ {
		n += slash(rest[n:])
		if i == least || i > least && i >= most-deepest {
			add(todo, point{from.at + least, from.from + n})
		}
	}
	return least > 0 && end == len(rest)
}

func add(todo *[]point, p point) {
	if i, found := slices.BinarySearchFunc(*todo, p, point.compare); !found {
		*todo = slices.Insert(*todo, i, p)
	}
}

func first(todo *[]point) (point, bool) {
	if len(*todo) == 0 {
		return point{}, false
	}
	p := (*todo)[0]
	*todo = slices.Delete(*todo, 0, 1)
	return p, true
}

// begins tells whether text begins with c, and with how many bytes of it.
func (c character) begins(text string) int {
	if c.raw {
		if text[0] == byte(c.r) {
			return 1
		}
		return 0
	}
	if r, size := utf8.DecodeRuneInString(text); r == c.r {
		return size // an invalid byte is a U+FFFD, as for encoding/json
	}
	return 0
}
