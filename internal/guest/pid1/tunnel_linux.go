package pid1

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// door is where programs connect to that want out of a sandbox without a
// network. PID 1 reads nothing of what they say: it carries their bytes to the
// owner, who decides. It holds no more connections than wire.MaxTunnels.
type door struct {
	l     *net.TCPListener
	conns chan *net.TCPConn // to who carries them
	slots chan struct{}     // one for each connection that is held
}

// tunnelGrace is how long a program may go on speaking when the host has said
// all, before it is cut off.
const tunnelGrace = 30 * time.Second

// listen opens the door, for the owner alone: it is his connection that
// carries what comes.
func (s *session) listen() *wire.Failure {
	if !s.owns {
		return &wire.Failure{Code: "unsupported", Text: "only the connection that owns the sandbox can carry its programs' connections", Hint: "create the sandbox without detached"}
	}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if s.g.door != nil {
		return &wire.Failure{Code: "conflict", Text: "programs can connect already"}
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: wire.ProxyPort})
	if err != nil {
		return failure(err, "listen", "")
	}
	d := &door{l, make(chan *net.TCPConn), make(chan struct{}, wire.MaxTunnels)}
	s.g.door = d
	go d.accept()
	return nil
}

func (d *door) accept() {
	for {
		d.slots <- struct{}{}
		conn, err := d.l.AcceptTCP()
		if err != nil {
			<-d.slots
			time.Sleep(50 * time.Millisecond) // out of descriptors, say
			continue
		}
		d.conns <- conn
	}
}

// tunnel waits for a program to connect, and carries what it and the host say
// until both have ended.
func (s *session) tunnel(stream *yamux.Stream) {
	s.g.mu.Lock()
	d := s.g.door
	s.g.mu.Unlock()
	if d == nil || !s.owns {
		answer(stream, &wire.Failure{Code: "conflict", Text: "programs cannot connect"})
		return
	}
	var conn *net.TCPConn
	select {
	case conn = <-d.conns:
	case <-s.over:
		return
	}
	defer func() { <-d.slots }()
	defer conn.Close()
	if wire.Write(stream, &wire.Event{Kind: wire.EventStarted}) != nil {
		return
	}
	var once sync.Once
	lost := func() { // the program's connection, in both directions
		once.Do(func() {
			_ = conn.Close()
			_, _ = wire.WriteFrames(stream, wire.TagError, wire.Marshal(&wire.Failure{}))
		})
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		if !carryUp(stream, conn, &s.g.calm) {
			lost()
		}
	}()
	if carryDown(conn, stream) {
		_ = conn.CloseWrite()
		end := time.Now().Add(tunnelGrace)
		_ = conn.SetReadDeadline(end)
		_ = stream.SetWriteDeadline(end)
	} else {
		lost()
	}
	<-up
}

// smallPiece is what a connection's buffers hold, one each way, until it has
// plenty to carry: most have little, and there may be many.
const smallPiece = 8 << 10

// carryUp sends what the program says, and reports whether it came to an end
// of its own.
func carryUp(stream io.Writer, conn io.Reader, calm *calm) bool {
	buf := make([]byte, frameHead+smallPiece)
	for sent := 0; ; {
		n, err := conn.Read(buf[frameHead:])
		if sent += n; n > 0 {
			if _, werr := stream.Write(wire.AppendFrame(buf[:0], wire.TagStdout, buf[frameHead:frameHead+n])); werr != nil {
				return false
			}
		}
		if sent >= plenty && n >= pageful {
			calm.keep()
		}
		if sent >= plenty && len(buf) < wire.MaxFrame {
			buf = make([]byte, frameHead+wire.MaxFrame)
		}
		if err == io.EOF { //nolint:errorlint // of a connection's own, never wrapped
			_, err = wire.WriteFrames(stream, wire.TagEnd, nil)
			return err == nil
		}
		if err != nil {
			return false
		}
	}
}

// carryDown gives the program what the host says, and reports whether it came
// to an end before the program would not have more.
func carryDown(conn io.Writer, stream io.Reader) bool {
	buf := make([]byte, smallPiece)
	for sent := 0; ; {
		n, err := stream.Read(buf)
		if sent += n; n > 0 {
			if _, werr := conn.Write(buf[:n]); werr != nil {
				return false
			}
		}
		if sent >= plenty && len(buf) == smallPiece {
			buf = make([]byte, wire.MaxFrame)
		}
		if err != nil {
			return err == io.EOF
		}
	}
}
