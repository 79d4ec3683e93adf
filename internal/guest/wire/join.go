package wire

import (
	"encoding/binary"
	"io"
	"sync"
	"time"
)

// A Joiner makes few writes of the many that yamux makes: each is a message
// of an engine's, and a wake-up of every process on the way. Not one byte is
// changed or reordered.
//
//   - A frame's header goes with its body.
//   - A frame that opens a stream, accepts or ends it waits for the next one,
//     a millisecond at most: an order or an answer mostly follows.
//   - While there is a [Joiner.Hold], small frames wait for its end, as long
//     at most: who holds may himself wait for the other side.
type Joiner struct {
	conn io.ReadWriteCloser

	mu     sync.Mutex
	buf    []byte // not written yet
	body   bool   // a header is in buf whose body comes next
	holds  int
	timer  *time.Timer
	ticks  bool // the timer runs
	failed error
}

const (
	muxHeader = 12

	// linger is how long a frame may wait for company.
	linger = time.Millisecond

	// heldMost is held at most: what is larger needs the other side's
	// answers to get through.
	heldMost = 16 << 10
)

// Join makes a Joiner for one yamux session.
func Join(conn io.ReadWriteCloser) *Joiner { return &Joiner{conn: conn} }

func (j *Joiner) Read(b []byte) (int, error) { return j.conn.Read(b) }

// Write takes what yamux writes: a header, or the body of the one before.
func (j *Joiner) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return 0, j.failed
	}
	if g, ok := j.conn.(gatherer); ok && j.body && len(b) >= heldMost {
		j.body = false
		return len(b), j.flushWith(g, b)
	}
	j.buf = append(j.buf, b...)
	waits := false
	switch {
	case j.body || len(b) != muxHeader:
		j.body = false
	case b[1] == 0 && binary.BigEndian.Uint32(b[8:]) > 0:
		j.body = true
		return len(b), nil
	default: // a window update with no flag but SYN, ACK and FIN
		waits = b[1] == 1 && b[3] != 0 && b[3]&^7 == 0
	}
	if (waits || j.holds > 0) && len(j.buf) < heldMost {
		j.flushLater()
		return len(b), nil
	}
	return len(b), j.flush()
}

// Hold keeps small frames together until the returned function is called,
// once.
func (j *Joiner) Hold() (release func()) {
	j.mu.Lock()
	j.holds++
	j.mu.Unlock()
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.holds--; j.holds == 0 && !j.body {
			_ = j.flush() // the next write tells
		}
	}
}

// gatherer takes two pieces for one write: what is large is not copied for it.
type gatherer interface{ Gather(a, b []byte) error }

// flush writes all there is. The caller holds mu.
func (j *Joiner) flush() error {
	return j.flushBy(func() error { _, err := j.conn.Write(j.buf); return err })
}

func (j *Joiner) flushWith(g gatherer, b []byte) error {
	return j.flushBy(func() error { return g.Gather(j.buf, b) })
}

func (j *Joiner) flushBy(write func() error) error {
	if j.ticks {
		j.timer.Stop()
		j.ticks = false
	}
	if len(j.buf) == 0 || j.failed != nil {
		return j.failed
	}
	j.failed = write()
	clear(j.buf) // it may have held a secret
	j.buf = j.buf[:0]
	return j.failed
}

func (j *Joiner) flushLater() {
	switch {
	case j.ticks:
		return
	case j.timer == nil:
		j.timer = time.AfterFunc(linger, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.ticks && !j.body {
				_ = j.flush()
			}
			j.ticks = false
		})
	default:
		j.timer.Reset(linger)
	}
	j.ticks = true
}

// Close closes the connection; what still waited is lost with it.
func (j *Joiner) Close() error {
	err := j.conn.Close() // first: it ends a write under way
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	j.ticks = false
	return err
}
