package sandbox

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Text is a piece of output as text.
type Text struct {
	Stream Stream
	Text   string // valid UTF-8
}

// Text yields the program's output as text while it comes. A character that
// arrives in two chunks is yielded whole, once its last byte is there; bytes
// that are no UTF-8 become U+FFFD. [Process.Output] has the bytes themselves.
// Leaving the loop early kills the program with all its descendants; an error
// is yielded last.
func (p *Process) Text() iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		var decoders [3]decoder // by Stream
		for c, err := range p.Output() {
			if err != nil {
				yield(Text{}, err)
				return
			}
			if s := decoders[c.Stream].next(c.Data); s != "" && !yield(Text{c.Stream, s}, nil) {
				return
			}
		}
		for _, stream := range []Stream{Stdout, Stderr} {
			if s := decoders[stream].end(); s != "" && !yield(Text{stream, s}, nil) {
				return
			}
		}
	}
}

// Text gives the output as text: bytes that are no UTF-8 become U+FFFD.
func (r *Result) Text() (stdout, stderr string) {
	return decode(r.Stdout), decode(r.Stderr)
}

// decoder turns chunks into text that does not depend on where they were cut.
// Its zero value is ready.
type decoder struct{ rest []byte } // the beginning of a character

func (d *decoder) next(b []byte) string {
	if len(d.rest) > 0 {
		b = append(d.rest, b...)
	}
	whole := len(b)
	// Of the last three bytes one may begin a character that is not all there.
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				whole -= i
			}
			break
		}
	}
	d.rest = append([]byte(nil), b[whole:]...)
	return decode(b[:whole])
}

// end gives what never became a character.
func (d *decoder) end() string {
	b := d.rest
	d.rest = nil
	return decode(b)
}

// decode replaces each byte that is part of no character, one by one, so that
// the result is the same however the bytes were cut.
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r) // U+FFFD for a byte that is none
		b = b[n:]
	}
	return s.String()
}
