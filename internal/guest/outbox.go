package guest

import (
	"errors"
	"io"
	"sync"

	"github.com/hashicorp/yamux"
)

// outbox is what the multiplexer writes to. It takes everything at once and
// hands it on by a goroutine of its own, so that a guest that stops reading
// holds nobody: the multiplexer would wait for it in every call, also in those
// that open, end or acknowledge a stream, whatever the caller's context says.
// Who sends content waits for room first, as long as he likes (see
// [stream.Write]).
type outbox struct {
	io.ReadWriteCloser
	more chan struct{} // there is something to hand on, or no more ever

	mu   sync.Mutex
	buf  []byte
	room chan struct{} // closed once there is room; nil while nobody waits
	err  error         // why nothing more is taken
}

const (
	// boxEnough may wait before content has to.
	boxEnough = 256 << 10
	// boxMost is never reached by a guest that reads: beyond what content
	// was let in, only the few bytes that streams begin and end with come here.
	boxMost = 64 << 20
)

var errUnread = errors.New("the guest takes nothing of what it is sent")

func newOutbox(conn io.ReadWriteCloser) *outbox {
	return &outbox{ReadWriteCloser: conn, more: make(chan struct{}, 1)}
}

// Write never waits.
func (o *outbox) Write(b []byte) (int, error) {
	if err := o.Gather(b, nil); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Gather writes a and then b.
func (o *outbox) Gather(a, b []byte) error {
	o.mu.Lock()
	if o.err == nil && len(o.buf)+len(a)+len(b) > boxMost {
		o.err = errUnread
	}
	err := o.err
	if err == nil {
		o.buf = append(append(o.buf, a...), b...)
	}
	o.mu.Unlock()
	o.wake()
	return err
}

func (o *outbox) wake() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// run hands on what comes, until the connection ends.
func (o *outbox) run() {
	var out []byte
	for range o.more {
		o.mu.Lock()
		out, o.buf = o.buf, out[:0]
		err := o.err
		o.makeRoom()
		o.mu.Unlock()
		if err == nil && len(out) > 0 {
			_, err = o.ReadWriteCloser.Write(out)
		}
		clear(out) // it may have held a secret
		if cap(out) > 2*boxEnough {
			out = nil
		}
		if err != nil {
			o.fail(err)
			_ = o.ReadWriteCloser.Close()
			return
		}
	}
}

// makeRoom lets those go on who wait for it. The caller holds mu.
func (o *outbox) makeRoom() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// fail takes nothing more, and keeps nothing.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	clear(o.buf)
	o.buf = nil
	o.makeRoom()
	o.mu.Unlock()
	o.wake()
}

// wait returns once there is room for content, or cut is closed.
func (o *outbox) wait(cut <-chan struct{}) error {
	for {
		select {
		case <-cut:
			return yamux.ErrTimeout
		default:
		}
		o.mu.Lock()
		if o.err != nil || len(o.buf) < boxEnough {
			err := o.err
			o.mu.Unlock()
			return err
		}
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-cut:
		}
	}
}

// Close closes the connection; what still waited is lost with it.
func (o *outbox) Close() error {
	err := o.ReadWriteCloser.Close() // first: it ends a write under way
	o.fail(yamux.ErrSessionShutdown)
	return err
}
