package guest

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// guard reads the multiplexer's frames before it does and ends the connection
// at any that our guest does not send: it opens no stream, asks for no answer,
// speaks only on streams that the host opened, and not after their end. What
// comes on a stream that the host has closed is dropped. So nothing from inside
// makes the host spend memory of its own accord, and what it lets through is
// bounded by the windows of the streams in use.
//
// A frame is handed on once all of it is there: the multiplexer holds a lock
// while it reads a body, on which whoever reads that stream would wait for as
// long as the guest likes, whatever his context says.
type guard struct {
	io.ReadWriteCloser
	r     *bufio.Reader
	head  [muxHead]byte
	frame []byte // memory of the last one
	rest  []byte // what of it is to be handed on

	mu   sync.Mutex
	next uint32 // number of the stream that is opened next
	live map[uint32]ends
}

// ends are the directions of a stream that are over.
type ends uint8

const (
	endHere  ends = 1 // the host has closed it
	endThere ends = 2 // the guest has
)

const (
	muxHead = 12
	// muxWindow is what may come on a stream before it is read. It is more
	// than the pipes and buffers on the way hold, so that those, and not the
	// guest's wait for an answer, slow a program down that says too much.
	muxWindow = 4 << 20

	muxData, muxWindowUpdate, muxPing, muxGoAway = 0, 1, 2, 3

	flagSYN, flagFIN, flagRST = 1, 4, 8
)

func newGuard(conn io.ReadWriteCloser) *guard {
	return &guard{ReadWriteCloser: conn, r: bufio.NewReaderSize(conn, 64<<10), next: 1, live: map[uint32]ends{}}
}

func (g *guard) Read(b []byte) (int, error) {
	for len(g.rest) == 0 {
		if _, err := io.ReadFull(g.r, g.head[:]); err != nil {
			return 0, err
		}
		pass, ok := g.judge()
		if !ok {
			_ = g.Close()
			return 0, wire.ErrMalformed
		}
		length := 0
		if g.head[1] == muxData {
			length = int(binary.BigEndian.Uint32(g.head[8:]))
		}
		if !pass {
			if _, err := g.r.Discard(length); err != nil {
				return 0, err
			}
			continue
		}
		if err := g.whole(length); err != nil {
			return 0, err
		}
	}
	n := copy(b, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// whole reads the body of the frame in head. Memory follows what comes, not
// what was announced, and a large frame's is not kept.
func (g *guard) whole(length int) error {
	if cap(g.frame) > 2*wire.MaxFrame {
		g.frame = nil
	}
	g.frame = append(g.frame[:0], g.head[:]...)
	for left := length; left > 0; {
		g.frame = slices.Grow(g.frame, min(left, wire.MaxFrame))
		n, err := g.r.Read(g.frame[len(g.frame):min(cap(g.frame), len(g.frame)+left)])
		g.frame = g.frame[:len(g.frame)+n]
		if left -= n; err != nil && left > 0 {
			return err
		}
	}
	g.rest = g.frame
	return nil
}

// judge says of the frame in head whether the multiplexer gets to see it, and
// whether a guest of ours could have sent it.
func (g *guard) judge() (pass, ok bool) {
	kind, flags := g.head[1], binary.BigEndian.Uint16(g.head[2:])
	id, length := binary.BigEndian.Uint32(g.head[4:]), binary.BigEndian.Uint32(g.head[8:])
	if g.head[0] != 0 || kind > muxGoAway || flags&flagSYN != 0 {
		return false, false
	}
	if kind == muxPing || kind == muxGoAway {
		return true, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if id%2 == 0 || id >= g.next {
		return false, false
	}
	state, live := g.live[id]
	if kind == muxData {
		if length > muxWindow || flags != 0 || live && state&endThere != 0 {
			return false, false
		}
		return live && state&endHere == 0, true
	}
	if !live { // on its way while the stream ended
		return false, true
	}
	switch {
	case flags&flagRST != 0:
		delete(g.live, id)
	case flags&flagFIN != 0 && state&endThere != 0:
		return false, false
	case flags&flagFIN != 0:
		g.end(id, endThere)
	}
	return true, true
}

// end notes that one direction of a stream is over. The caller holds mu.
func (g *guard) end(id uint32, which ends) {
	state, live := g.live[id]
	switch state |= which; {
	case !live:
	case state == endHere|endThere:
		delete(g.live, id)
	default:
		g.live[id] = state
	}
}

// open lets the guest speak on one stream more, the one that mux opens.
// Streams have odd numbers, in the order of their opening.
func (g *guard) open(mux *yamux.Session, box *outbox) (*stream, error) {
	g.mu.Lock()
	g.live[g.next] = 0
	g.next += 2
	g.mu.Unlock()
	s, err := mux.OpenStream()
	if err != nil {
		return nil, err // so does every later one: the session is over
	}
	return &stream{Stream: s, g: g, box: box, cut: make(chan struct{})}, nil
}

// stream is one of the multiplexer's, which keeps nothing once it is closed.
// Its deadlines are past, or none.
type stream struct {
	*yamux.Stream
	g   *guard
	box *outbox

	mu    sync.Mutex
	cut   chan struct{} // closed while nothing may be written
	isCut bool
	over  bool
}

// Write sends content, once there is room for it. It waits for that and for
// the guest's window, until the deadline or the stream's end.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	if err := s.box.wait(cut); err != nil {
		return 0, err
	}
	return s.Stream.Write(b)
}

// SetDeadline is for both directions.
func (s *stream) SetDeadline(t time.Time) error {
	s.setCut(!t.IsZero(), false)
	return s.Stream.SetDeadline(t)
}

// SetWriteDeadline is for the host's direction.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.setCut(!t.IsZero(), false)
	return s.Stream.SetWriteDeadline(t)
}

func (s *stream) setCut(cut, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.over || over
	switch cut = cut || s.over; {
	case cut && !s.isCut:
		close(s.cut)
	case !cut && s.isCut:
		s.cut = make(chan struct{})
	}
	s.isCut = cut
}

// CloseWrite ends the host's direction alone.
func (s *stream) CloseWrite() error {
	s.setCut(true, true)
	return s.Stream.Close()
}

// Close ends the stream in both directions: what has come and was not read is
// dropped, and so is what still comes.
func (s *stream) Close() error {
	s.setCut(true, true)
	s.g.mu.Lock()
	s.g.end(s.StreamID(), endHere)
	s.g.mu.Unlock()
	err := s.Stream.Close()
	_ = s.SetReadDeadline(past)
	var scrap [4 << 10]byte
	for {
		if n, err := s.Read(scrap[:]); n == 0 || err != nil {
			break
		}
	}
	s.Shrink()
	return err
}
