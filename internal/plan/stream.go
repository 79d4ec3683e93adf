package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// stream walks one JSON document of any size, one value at a time. Whoever
// reads a member or an element consumes its value by exactly one of skip, raw,
// object and array.
type stream struct {
	r      io.Reader
	buf    []byte
	pos    int
	end    int
	before int64 // bytes read before buf
	err    error
}

func newStream(r io.Reader) *stream { return &stream{r: r, buf: make([]byte, 64<<10)} }

// offset is how many bytes were consumed.
func (s *stream) offset() int64 { return s.before + int64(s.pos) }

// fill reads more; what was consumed is dropped.
func (s *stream) fill() error {
	if s.err != nil {
		return s.err
	}
	s.before += int64(s.pos)
	s.pos = 0
	s.end, s.err = s.r.Read(s.buf)
	for s.end == 0 && s.err == nil {
		s.end, s.err = s.r.Read(s.buf)
	}
	if s.end > 0 {
		return nil
	}
	if errors.Is(s.err, io.EOF) {
		s.err = io.ErrUnexpectedEOF
	}
	return s.err
}

// peek gives the next byte that is no white space.
func (s *stream) peek() (byte, error) {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\r', '\n':
				s.pos++
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

func (s *stream) expect(want byte) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != want {
		return fmt.Errorf("not the JSON of a plan: %q at byte %d, where %q should be", c, s.offset(), want)
	}
	s.pos++
	return nil
}

// each walks the items between two brackets, separated by commas.
func (s *stream) each(opening, closing byte, item func() error) error {
	if err := s.expect(opening); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c == closing && first {
			s.pos++
			return nil
		}
		if !first {
			if c == closing {
				s.pos++
				return nil
			}
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// object calls member for each member of an object.
func (s *stream) object(member func(key string) error) error {
	return s.each('{', '}', func() error {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c != '"' {
			return fmt.Errorf("not the JSON of a plan: %q at byte %d, where a name should be", c, s.offset())
		}
		raw, err := s.raw(maxName)
		if err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(raw, &key); err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// array calls element for each element of an array; null is an empty one.
func (s *stream) array(element func() error) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c == 'n' {
		return s.skip()
	}
	return s.each('[', ']', element)
}

// Limits of single values.
const (
	maxName  = 1 << 16
	maxValue = 32 << 20
)

var errTooLarge = errors.New("one value of the plan is too large to read")

// skip passes over one value. It balances brackets and strings, and leaves the
// rest of the grammar to those who read.
func (s *stream) skip() error { return s.value(nil, 0) }

// raw gives the text of one value of at most limit bytes.
func (s *stream) raw(limit int) ([]byte, error) {
	var out []byte
	err := s.value(&out, limit)
	return out, err
}

func (s *stream) value(out *[]byte, limit int) error {
	if _, err := s.peek(); err != nil {
		return err
	}
	depth, text, escaped, began := 0, false, false, false
	for {
		start := s.pos
		done := false
	scan:
		for ; s.pos < s.end; s.pos++ {
			c := s.buf[s.pos]
			switch {
			case escaped:
				escaped = false
			case text:
				switch c {
				case '\\':
					escaped = true
				case '"':
					text = false
					if depth == 0 {
						s.pos++
						done = true
						break scan
					}
				}
			case c == '"':
				text, began = true, true
			case c == '{' || c == '[':
				depth++
				began = true
			case c == '}' || c == ']':
				if depth == 0 { // the end of what holds this value
					done = true
					break scan
				}
				if depth--; depth == 0 {
					s.pos++
					done = true
					break scan
				}
			case depth == 0 && (c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\r' || c == '\n'):
				done = true
				break scan
			default:
				began = true
			}
		}
		if out != nil {
			if len(*out)+s.pos-start > limit {
				return errTooLarge
			}
			*out = append(*out, s.buf[start:s.pos]...)
		}
		if done {
			if !began {
				return fmt.Errorf("not the JSON of a plan: no value at byte %d", s.offset())
			}
			return nil
		}
		if err := s.fill(); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && began && depth == 0 && !text {
				return nil // a number or a word at the end of the text
			}
			return err
		}
	}
}
