package wire

import (
	"encoding/binary"
	"errors"
	"io"
)

// MaxMessage bounds one message. An exec's arguments and environment are the
// largest; the kernel takes 2 MiB of them.
const MaxMessage = 4 << 20

// MaxReply bounds what the guest says in one message.
const MaxReply = 256 << 10

// ErrMalformed is what every decoder says of bytes that are not a message.
var ErrMalformed = errors.New("malformed message")

// ErrTooLarge is what is said of a message over its limit, before it is sent.
var ErrTooLarge = errors.New("the arguments and env are too large for one message")

// A Message lists its fields to a Coder, once for both directions.
type Message interface{ Fields(c *Coder) }

// A Coder writes a message's fields, or reads them.
type Coder struct {
	buf     []byte
	reading bool
	failed  bool
}

// Marshal encodes m.
func Marshal(m Message) []byte {
	c := Coder{}
	m.Fields(&c)
	return c.buf
}

// Unmarshal decodes m from all of b.
func Unmarshal(b []byte, m Message) error {
	c := Coder{buf: b, reading: true}
	m.Fields(&c)
	if c.failed || len(c.buf) > 0 {
		return ErrMalformed
	}
	return nil
}

// Write sends m with its length.
func Write(w io.Writer, m Message) error { return WriteOp(w, 0, m) }

// WriteOp sends an operation's name and its message in one piece; op 0 is
// left out.
func WriteOp(w io.Writer, op Op, m Message) error {
	body := Marshal(m)
	if len(body) > MaxMessage {
		return ErrTooLarge
	}
	b := make([]byte, 0, 5+len(body))
	if op != 0 {
		b = append(b, byte(op))
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
	_, err := w.Write(b)
	clear(b) // it may have held a secret
	clear(body)
	return err
}

// Read receives a message that Write sent.
func Read(r io.Reader, m Message) error { return readMessage(r, m, MaxMessage) }

// ReadReply is Read for what comes from the guest.
func ReadReply(r io.Reader, m Message) error { return readMessage(r, m, MaxReply) }

func readMessage(r io.Reader, m Message, limit uint32) error {
	b, err := readBlock(r, limit)
	if err != nil {
		return err
	}
	return Unmarshal(b, m)
}

func readBlock(r io.Reader, limit uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > limit {
		return nil, ErrMalformed
	}
	// Grow with what arrives, not with what was announced.
	b := make([]byte, 0, min(n, 64<<10))
	for uint32(len(b)) < n {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		got, err := r.Read(b[len(b):min(cap(b), int(n))])
		b = b[:len(b)+got]
		if err != nil && uint32(len(b)) < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return b, nil
}

// Uint is a field of up to 64 bits.
func (c *Coder) Uint(v *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	n, size := binary.Uvarint(c.buf)
	if c.failed || size <= 0 {
		c.failed, *v = true, 0
		return
	}
	*v, c.buf = n, c.buf[size:]
}

// Num is a field of any integer type. A value that does not fit is malformed.
func Num[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, v *T) {
	u := uint64(int64(*v)<<1) ^ uint64(int64(*v)>>63) // zigzag, so that -1 is short
	c.Uint(&u)
	if c.reading {
		n := int64(u>>1) ^ -int64(u&1)
		if *v = T(n); int64(*v) != n {
			c.failed, *v = true, 0
		}
	}
}

// Bool is a field that is 0 or 1.
func (c *Coder) Bool(v *bool) {
	var u uint64
	if *v {
		u = 1
	}
	c.Uint(&u)
	if u > 1 {
		c.failed = true
	}
	*v = u == 1
}

// Str is a field of bytes.
func (c *Coder) Str(v *string) {
	n := uint64(len(*v))
	c.Uint(&n)
	if !c.reading {
		c.buf = append(c.buf, *v...)
		return
	}
	if n > uint64(len(c.buf)) {
		c.failed, *v = true, ""
		return
	}
	*v, c.buf = string(c.buf[:n]), c.buf[n:]
}

// List is a field of any number of items, each of at least one byte.
func List[T any](c *Coder, v *[]T, item func(*T)) {
	n := uint64(len(*v))
	c.Uint(&n)
	if !c.reading {
		for i := range *v {
			item(&(*v)[i])
		}
		return
	}
	*v = nil
	for range n {
		if c.failed || len(c.buf) == 0 {
			c.failed = true
			return
		}
		var t T
		item(&t)
		*v = append(*v, t)
	}
}

// Strs is a list of Str.
func (c *Coder) Strs(v *[]string) { List(c, v, c.Str) }

// Pairs is a list of names with values.
func (c *Coder) Pairs(v *[][2]string) {
	List(c, v, func(p *[2]string) { c.Str(&p[0]); c.Str(&p[1]) })
}
