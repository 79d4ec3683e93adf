package wire

import (
	"bufio"
	"encoding/binary"
	"io"
)

// MaxFrame bounds a frame of content.
const MaxFrame = 128 << 10

// Tag says what a frame holds. The end of a direction is a frame of its own,
// so that nothing depends on a half-closed stream.
type Tag uint8

const (
	TagEnd    Tag = 0 // no more; empty
	TagStdout Tag = 1 // and the content of anything that has only one
	TagStderr Tag = 2
	TagError  Tag = 3 // a Failure instead of the end
)

const frameHead = 5

// AppendFrame adds a frame to b.
func AppendFrame(b []byte, t Tag, data []byte) []byte {
	b = append(b, byte(t))
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// WriteFrameHead begins a frame whose n bytes the caller writes next.
func WriteFrameHead(w io.Writer, t Tag, n int) error {
	head := [frameHead]byte{byte(t)}
	binary.BigEndian.PutUint32(head[1:], uint32(n))
	_, err := w.Write(head[:])
	return err
}

// WriteFrames sends data in as many frames as it takes, each in one piece,
// and returns how much of data was sent.
func WriteFrames(w io.Writer, t Tag, data []byte) (int, error) {
	sent := 0
	for {
		part := data[sent:min(len(data), sent+MaxFrame)]
		if _, err := w.Write(AppendFrame(make([]byte, 0, frameHead+len(part)), t, part)); err != nil {
			return sent, err
		}
		if sent += len(part); sent == len(data) {
			return sent, nil
		}
	}
}

// Frames reads frames in pieces: an interrupted read loses nothing.
type Frames struct {
	r    *bufio.Reader
	tag  Tag
	left int
	err  error
}

// NewFrames reads from r.
func NewFrames(r io.Reader) *Frames { return &Frames{r: bufio.NewReaderSize(r, 64<<10)} }

// Read gives the next piece of content and whose it is. At TagEnd it returns
// io.EOF, at TagError the Failure; both are final.
func (f *Frames) Read(b []byte) (Tag, int, error) {
	if err := f.begin(); err != nil {
		return 0, 0, err
	}
	n, err := f.r.Read(b[:min(len(b), f.left)])
	f.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return f.tag, n, err
}

// pieceMost bounds what Next returns.
const pieceMost = 64 << 10

// Next is Read into memory of its own, no more than the piece needs.
func (f *Frames) Next() (Tag, []byte, error) {
	if err := f.begin(); err != nil {
		return 0, nil, err
	}
	if _, err := f.r.Peek(1); err == nil { // what has come, not what was announced
		b := make([]byte, min(f.left, max(f.r.Buffered(), 1), pieceMost))
		tag, n, err := f.Read(b)
		return tag, b[:n], err
	} else if err == io.EOF {
		return 0, nil, io.ErrUnexpectedEOF
	} else {
		return 0, nil, err
	}
}

// begin reads on to a frame with content.
func (f *Frames) begin() error {
	for f.left == 0 {
		if f.err != nil {
			return f.err
		}
		head, err := f.r.Peek(frameHead)
		if err != nil {
			if err == io.EOF { // the end is a frame; this is a cut
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		tag, n := Tag(head[0]), binary.BigEndian.Uint32(head[1:])
		switch {
		case n > MaxFrame, tag > TagError, tag == TagEnd && n > 0:
			f.err = ErrMalformed
			continue
		case tag == TagError:
			f.err = f.failure(int(n))
			continue
		}
		_, _ = f.r.Discard(frameHead) // buffered
		if tag == TagEnd {
			f.err = io.EOF
			continue
		}
		f.tag, f.left = tag, int(n)
	}
	return nil
}

func (f *Frames) failure(n int) error {
	body := make([]byte, frameHead+n)
	if _, err := io.ReadFull(f.r, body); err != nil {
		return io.ErrUnexpectedEOF
	}
	var m Failure
	if err := Unmarshal(body[frameHead:], &m); err != nil {
		return err
	}
	return &m
}
