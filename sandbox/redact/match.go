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
	w := walk{pattern: p, s: s}
	w.todo = w.room[:0]
	var room [32]character
	for w.reach(point{}); len(w.todo) > 0; {
		next := w.todo[0]
		w.todo = slices.Delete(w.todo, 0, 1)
		rest := s[next.from:]
		w.more = w.more || unfinished(rest)
		for _, c := range characters(room[:0], rest) {
			if c.raw && c.r == '\\' && c.length == slash(rest) {
				continue // it is for slashes
			}
			if size := c.begins(p.text[next.at:]); size > 0 {
				w.reach(point{next.at + size, next.from + c.length})
			}
		}
		w.slashes(next)
		if p.encoded && next.at > 0 {
			w.lineBreak(next)
		}
	}
	return w.longest, w.more && !last
}

// walk is a match under way.
type walk struct {
	pattern
	s       []byte
	todo    []point // where the text means more than it says, sorted
	room    [16]point
	longest int
	more    bool // s ended on a way that could go on
}

// reach goes on from q for as long as there is one way.
func (w *walk) reach(q point) {
	for q.at < len(w.text) && q.from < len(w.s) && w.s[q.from] == w.text[q.at] && !special[w.s[q.from]] {
		q.at++
		q.from++
	}
	switch {
	case q.at == len(w.text):
		w.longest = max(w.longest, q.from)
	case q.from == len(w.s):
		w.more = true
	case special[w.s[q.from]]:
		if i, found := slices.BinarySearchFunc(w.todo, q, point.compare); !found {
			w.todo = slices.Insert(w.todo, i, q)
		}
	}
}

// slashes follows a run of backslashes in the pattern through one in the text,
// which may be up to eight times as long, and may leave some to the escape that
// comes after it. All that a run can be is one step: taken one by one, long runs
// would meet in too many ways.
func (w *walk) slashes(from point) {
	least := 0
	for from.at+least < len(w.text) && w.text[from.at+least] == '\\' {
		least++
	}
	rest := w.s[from.from:]
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
			w.reach(point{from.at + least, from.from + n})
		}
	}
	if least > 0 && end == len(rest) {
		w.more = true
	}
}

// lineBreak goes on behind the end of a line.
func (w *walk) lineBreak(from point) {
	rest := w.s[from.from:]
	line := bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n"))
	switch {
	case len(line) == 0:
		w.more = true
	case line[0] == w.text[from.at]:
		w.reach(point{from.at + 1, from.from + len(rest) - len(line) + 1})
	}
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
