package redact

import (
	"errors"
	"io"
)

var errClosed = errors.New("write to a closed redact.Writer")

// piece is how much of a Write is looked at in one go, in bytes.
const piece = 32 << 10

// Writer gives a writer that passes what it is given on to w, without the
// secrets: the same bytes as [Redactor.String] makes of the whole, wherever the
// text is cut into writes. It holds back only what may be the beginning of a
// secret, at most a small multiple of the longest one's length, until it is
// decided or Close is called. Close writes the rest and leaves w open.
//
// The writer belongs to one goroutine. After w has failed, it only fails.
func (r Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{r: r, w: w} }

type writer struct {
	r       Redactor
	w       io.Writer
	held    []byte // not decided yet
	covered int    // how many of them belong to a match whose mark was written
	enough  int    // how many are worth another look
	out     []byte // reused
	err     error
}

func (w *writer) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		if w.err != nil {
			return n, w.err
		}
		part := p[n:min(n+piece, len(p))]
		n += len(part)
		w.held = append(w.held, part...)
		w.pass(false)
	}
	return len(p), w.err
}

func (w *writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	w.pass(true)
	err := w.err
	w.held, w.out = nil, nil
	if w.err == nil {
		w.err = errClosed
	}
	return err
}

func (w *writer) pass(last bool) {
	if w.err != nil || len(w.held) < w.enough && !last {
		return
	}
	var done int
	if w.r.table == nil {
		w.out, done = append(w.out[:0], w.held...), len(w.held)
	} else {
		w.out, done, w.covered = w.r.table().scan(w.out[:0], w.held, w.covered, last)
	}
	w.held = append(w.held[:0], w.held[done:]...)
	// What is undecided is looked at from its beginning each time: waiting for
	// an eighth more keeps a long secret that comes byte by byte linear.
	w.enough = len(w.held) + len(w.held)/8
	if len(w.out) > 0 {
		if n, err := w.w.Write(w.out); err != nil {
			w.err = err
		} else if n < len(w.out) {
			w.err = io.ErrShortWrite
		}
	}
}
