package pid1

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// drainGrace is how long after a program's exit its output may still come
// from descendants that hold its pipes. What was written before the exit is
// always delivered.
const drainGrace = 100 * time.Millisecond

// pipes are a program's descriptors 0 to 2 and our ends of them, nil where
// the program has /dev/null.
type pipes struct {
	ends         [3]int // the program's
	in, out, err *os.File
}

func openPipes(m *wire.Exec) (*pipes, error) {
	p := &pipes{ends: [3]int{-1, -1, -1}}
	var err error
	if m.Stdin {
		p.in, err = p.open(0, false)
	}
	if err == nil && !m.Detached {
		if p.out, err = p.open(1, true); err == nil {
			p.err, err = p.open(2, true)
		}
	}
	for i := range p.ends {
		if err == nil && p.ends[i] < 0 {
			p.ends[i], err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		p.closeChildEnds()
		p.close()
		return nil, err
	}
	return p, nil
}

// open makes the pipe for descriptor i; ours is the reading end if reading.
func (p *pipes) open(i int, reading bool) (*os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	ours, theirs := fds[1], fds[0]
	if reading {
		ours, theirs = theirs, ours
	}
	p.ends[i] = theirs
	if err := unix.SetNonblock(ours, true); err != nil {
		_ = unix.Close(ours)
		return nil, err
	}
	return os.NewFile(uintptr(ours), "pipe"), nil
}

func (p *pipes) child() []uintptr {
	return []uintptr{uintptr(p.ends[0]), uintptr(p.ends[1]), uintptr(p.ends[2])}
}

func (p *pipes) closeChildEnds() {
	for i, fd := range p.ends {
		if fd >= 0 {
			_ = unix.Close(fd)
			p.ends[i] = -1
		}
	}
}

func (p *pipes) close() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// pumps move a program's bytes while it runs.
type pumps struct {
	p       *pipes
	running atomic.Int32  // pumps of output
	drained chan struct{} // closed when none is
}

func (p *pipes) pump(data *yamux.Stream, x *execution, calm *calm) *pumps {
	ps := &pumps{p: p, drained: make(chan struct{})}
	ended := func() {
		if ps.running.Add(-1) == 0 {
			close(ps.drained)
		}
	}
	ps.running.Store(1)
	defer ended()
	go func() {
		if p.in != nil {
			feed(p.in, data, x)
		}
		hangUp(data)
	}()
	for tag, f := range map[wire.Tag]*os.File{wire.TagStdout: p.out, wire.TagStderr: p.err} {
		if f != nil {
			ps.running.Add(1)
			go func() {
				defer ended()
				drain(f, data, tag, calm)
			}()
		}
	}
	return ps
}

// finish is called after the exit; it returns once all output was sent.
func (ps *pumps) finish() {
	if ps.p.in != nil {
		_ = ps.p.in.Close()
	}
	for _, f := range []*os.File{ps.p.out, ps.p.err} {
		if f != nil {
			_ = f.SetReadDeadline(time.Now().Add(drainGrace))
		}
	}
	<-ps.drained
}

// hangUp drops what still comes until the host closes the stream, which ends
// writes too: nobody will read them.
func hangUp(stream *yamux.Stream) {
	_, _ = io.Copy(io.Discard, stream)
	_ = stream.SetWriteDeadline(past)
}

var past = time.Unix(1, 0)

// feed gives the program its stdin. When it reads no more, the host is told.
func feed(in *os.File, data *yamux.Stream, x *execution) {
	frames := wire.NewFrames(data)
	buf := make([]byte, 32<<10)
	for {
		_, n, err := frames.Read(buf)
		if err != nil { // the end, or the host is gone
			_ = in.Close()
			return
		}
		if _, err := in.Write(buf[:n]); err != nil {
			_ = in.Close()
			x.tell(wire.Event{Kind: wire.EventStdinClosed})
			return
		}
	}
}

const frameHead = 5

// drain sends what the program writes, until every writer is gone or, after
// the exit, the grace is over; then everything that was there at that moment
// is still sent.
func drain(f *os.File, data io.Writer, tag wire.Tag, calm *calm) {
	buf := make([]byte, frameHead+wire.MaxFrame/2)
	send := func(n int) bool {
		frame := wire.AppendFrame(buf[:0], tag, buf[frameHead:frameHead+n])
		_, err := data.Write(frame)
		return err == nil
	}
	bulk := false
	for sent := 0; ; {
		n, err := readPipe(f, buf[frameHead:], bulk)
		if n > 0 && !send(n) {
			break // nobody listens; the program must not notice
		}
		if before := sent; before < plenty && before+n >= plenty {
			widen(f)
			buf = make([]byte, frameHead+wire.MaxFrame)
		}
		sent += n
		if bulk = sent >= plenty && n >= pageful; bulk {
			calm.keep()
			if n < len(buf)/2 {
				nap(emptyNap) // for more to come at once
			}
		}
		if os.IsTimeout(err) {
			for left := pending(f); left > 0; {
				n, err := readLate(f, buf[frameHead:frameHead+min(left, len(buf)-frameHead)])
				if n <= 0 || err != nil || !send(n) {
					break
				}
				left -= n
			}
			break
		}
		if err != nil {
			_ = f.Close()
			return
		}
	}
	go discard(f)
}

// discard keeps a pipe open for descendants that outlive the program, so that
// writing to it does not end them.
func discard(f *os.File) {
	_ = f.SetReadDeadline(time.Time{})
	_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 4<<10))
	_ = f.Close()
}

// pending tells how many bytes are in the pipe.
func pending(f *os.File) int {
	n := 0
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// readLate reads what is there without regard to a deadline that has passed.
func readLate(f *os.File, b []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := raw.Control(func(fd uintptr) { n, err = readNow(fd, b) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}
