package pid1

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// A connection is lost when nothing is heard for so many ticks, though the
// host sends a sign of life every second: stdin's end alone misses an owner
// that was stopped, a daemon that was killed, a link that is half open. Ticks
// are counted, not time, which passes while a sandbox is paused.
const (
	tick        = time.Second / 2
	silentTicks = 9
)

// muxWindow is what a stream may hold here before it is read, so that the
// engine and its shim have something to carry while the host waits to hear that
// it was: half of it, the multiplexer's own, lets them run dry.
const muxWindow = 512 << 10

// memoryLimit is what PID 1 has when every connection's window is full, each at
// most doubled by how a buffer grows, and the buffers beside them: what was
// outgrown on the way is collected then rather than kept, as the sandbox's
// memory cap counts it.
const memoryLimit = wire.MaxTunnels*(2*muxWindow+64<<10) + 8<<20

// session is one connection from the host: the owner's, or a bridge's.
type session struct {
	g    *guest
	mux  *yamux.Session
	out  *wire.Joiner  // what mux writes to
	over chan struct{} // closed when the connection is
	owns bool          // it is the owner's

	mu    sync.Mutex
	data  map[uint64]chan *yamux.Stream // by token, until its exec takes it
	marks map[uint32]bool               // execs of this connection; true = may outlive it
}

// serve speaks with the host until the connection ends. If it was the
// owner's, the sandbox ends with it.
func (g *guest) serve(conn io.ReadWriteCloser) {
	owner := conn == g.owner
	ok, malformed := g.greet(conn)
	if ok {
		g.talk(conn)
	} else {
		_ = conn.Close()
	}
	switch {
	case owner && malformed:
		g.end(wire.ExitProtocol)
	case owner:
		g.end(wire.ExitOwner)
	}
}

func (g *guest) talk(conn io.ReadWriteCloser) {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	cfg.EnableKeepAlive = false
	// Writing waits for as long as there is a connection: giving up would
	// lose output.
	cfg.ConnectionWriteTimeout = 24 * time.Hour
	cfg.MaxStreamWindowSize = muxWindow
	// A host that reads slowly is waited for, and not cut off.
	cfg.StreamCloseTimeout = 0
	heard := &hearing{ReadWriteCloser: readAhead(conn)}
	out := wire.Join(heard)
	mux, err := yamux.Server(out, cfg)
	if err != nil {
		_ = conn.Close()
		return
	}
	s := &session{g: g, mux: mux, out: out, over: make(chan struct{}), owns: conn == g.owner, data: map[uint64]chan *yamux.Stream{}, marks: map[uint32]bool{}}
	go s.streams()
	lost := heard.silence(mux.CloseChan())
	close(s.over)
	if conn == g.owner {
		return // everything ends, without waiting for anything
	}
	if lost {
		go mux.Close()
	}
	_ = kill(s.mine)
}

// mine reports whether a mark is of an exec that ends with the connection.
func (s *session) mine(mark uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	outlives, ok := s.marks[mark]
	return ok && !outlives
}

func (s *session) streams() {
	for {
		stream, err := s.mux.AcceptStream()
		if err != nil {
			return
		}
		go s.stream(stream)
	}
}

// stream performs one operation.
func (s *session) stream(stream *yamux.Stream) {
	var op [1]byte
	if _, err := io.ReadFull(stream, op[:]); err != nil {
		_ = stream.Close()
		return
	}
	switch wire.Op(op[0]) {
	case wire.OpExec:
		var m wire.Exec
		perform(stream, &m, func() { s.exec(stream, &m) })
	case wire.OpData:
		var m wire.Data
		if err := wire.Read(stream, &m); err != nil {
			_ = stream.Close()
			return
		}
		s.rendezvous(m.Token) <- stream // whoever takes it closes it
	case wire.OpKill:
		var m wire.Kill
		perform(stream, &m, func() { answer(stream, s.kill(uint32(m.ID))) })
	case wire.OpAttest:
		perform(stream, &wire.Empty{}, func() { s.g.attest(stream) })
	case wire.OpFiles:
		var m wire.FileRequest
		perform(stream, &m, func() { s.files(stream, &m) })
	case wire.OpEnd:
		perform(stream, &wire.Empty{}, func() { s.g.end(wire.ExitEnded) })
	case wire.OpExtend:
		var m wire.Extend
		perform(stream, &m, func() { answer(stream, s.g.extend(m.Deadline)) })
	case wire.OpListen:
		perform(stream, &wire.Empty{}, func() { answer(stream, s.listen()) })
	case wire.OpTunnel:
		perform(stream, &wire.Empty{}, func() { s.tunnel(stream) })
	default:
		answer(stream, &wire.Failure{Code: "internal", Text: "no such operation"})
		finish(stream)
	}
}

// perform reads an operation's message, does it, and lets the host close.
func perform(stream *yamux.Stream, m wire.Message, do func()) {
	if err := wire.Read(stream, m); err == nil {
		do()
	}
	finish(stream)
}

// finish waits for the host to close its half and closes ours.
func finish(stream *yamux.Stream) {
	_, _ = io.Copy(io.Discard, stream)
	_ = stream.Close()
}

func answer(w io.Writer, f *wire.Failure) {
	e := wire.Event{Kind: wire.EventDone}
	if f != nil {
		e = wire.Event{Kind: wire.EventFailed, Failure: *f}
	}
	_ = wire.Write(w, &e)
}

// rendezvous is where an exec meets its data stream.
func (s *session) rendezvous(token uint64) chan *yamux.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.data[token]
	if ch == nil {
		ch = make(chan *yamux.Stream, 1)
		s.data[token] = ch
	}
	return ch
}

func (s *session) take(token uint64) *yamux.Stream {
	ch := s.rendezvous(token)
	defer func() {
		s.mu.Lock()
		delete(s.data, token)
		s.mu.Unlock()
	}()
	select {
	case stream := <-ch:
		return stream
	case <-s.over:
		return nil
	}
}

// own records an exec of this connection. Marks that no process bears any
// more are forgotten in time.
func (s *session) own(mark uint32, outlives bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks[mark] = outlives
	if len(s.marks)%512 != 0 {
		return
	}
	alive := map[uint32]bool{}
	err := scan(func(uint32) bool { return true }, func(m marked, _ func(unix.Signal)) { alive[m.mark] = true })
	if err != nil {
		return
	}
	for old := range s.marks {
		if old != mark && !alive[old] {
			delete(s.marks, old)
		}
	}
}

// kill ends one exec of this connection with all its descendants.
func (s *session) kill(mark uint32) *wire.Failure {
	s.mu.Lock()
	_, ok := s.marks[mark]
	s.mu.Unlock()
	if !ok {
		return nil // ended long ago
	}
	if err := kill(func(m uint32) bool { return m == mark }); err != nil {
		return &wire.Failure{Code: "leaked", Text: err.Error(), Hint: "destroy the sandbox"}
	}
	return nil
}

// hearing notes that something came from the host.
type hearing struct {
	io.ReadWriteCloser
	something atomic.Bool
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.ReadWriteCloser.Read(b)
	if n > 0 {
		h.something.Store(true)
	}
	return n, err
}

// silence waits for the connection's end, and returns true if it must be
// taken for lost.
func (h *hearing) silence(closed <-chan struct{}) bool {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for silent := 0; silent < silentTicks; silent++ {
		select {
		case <-closed:
			return false
		case <-ticker.C:
			if h.something.Swap(false) {
				silent = -1
			}
		}
	}
	return true
}
