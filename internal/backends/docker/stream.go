package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// maxFrame is far above what an engine sends in one frame.
const maxFrame = 16 << 20

// stream makes the two ways of an attached container one: what PID 1 writes to
// its stdout is read, what is written goes to its stdin. The engine puts eight
// bytes before each piece of output. Stderr carries no protocol; its end is
// kept, for errors.
//
// Half closing is not offered: for the guest it is the end of its owner.
type stream struct {
	conn net.Conn
	r    *bufio.Reader
	left int // bytes of the current stdout frame

	mu     sync.Mutex
	stderr []byte
}

const maxStderr = 4 << 10

func newStream(conn net.Conn) *stream {
	return &stream{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(s.r, head[:]); err != nil {
			return 0, eof(err)
		}
		n := binary.BigEndian.Uint32(head[4:])
		if head[0] > 3 || head[1]|head[2]|head[3] != 0 || n > maxFrame {
			return 0, fmt.Errorf("the engine's stream is not multiplexed: % x", head)
		}
		if head[0] == 1 {
			s.left = int(n)
			continue
		}
		if err := s.keep(int(n)); err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// keep reads n bytes of stderr and remembers the last ones.
func (s *stream) keep(n int) error {
	buf := make([]byte, min(n, maxStderr))
	for n > 0 {
		m, err := io.ReadFull(s.r, buf[:min(n, len(buf))])
		s.mu.Lock()
		s.stderr = append(s.stderr, buf[:m]...)
		if over := len(s.stderr) - maxStderr; over > 0 {
			s.stderr = append(s.stderr[:0], s.stderr[over:]...)
		}
		s.mu.Unlock()
		if n -= m; err != nil {
			return eof(err)
		}
	}
	return nil
}

// said gives what PID 1 wrote to its stderr, printable and short.
func (s *stream) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r < 0x7f {
			return r
		}
		return '?'
	}, string(s.stderr))
	return strings.TrimSpace(text)
}

func (s *stream) Write(p []byte) (int, error) { return s.conn.Write(p) }
func (s *stream) Close() error                { return s.conn.Close() }

// eof turns an end in the middle of a frame into an end: the container died.
func eof(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
