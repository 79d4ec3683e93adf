package pid1

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// helper is this binary started again with the workload's rights. The
// workload may interfere with it; it can do nothing that the workload cannot.
type helper struct {
	mark uint32
	done <-chan syscall.WaitStatus
	in   *os.File // nil if it gets none
	out  *os.File
}

func (g *guest) helper(mode string, stdin bool) (*helper, error) {
	p, err := openPipes(&wire.Exec{Stdin: stdin})
	if err != nil {
		return nil, err
	}
	defer p.closeChildEnds()
	_ = p.err.Close() // it has nothing to say there
	h := &helper{mark: g.marks.Add(1), in: p.in, out: p.out}
	h.done, err = g.reaper.helper(mode, g.attr(h.mark, "/", nil, p.child()))
	if err != nil {
		p.close()
		return nil, err
	}
	return h, nil
}

// close ends the helper, whatever the workload made of it.
func (h *helper) close() {
	if h.in != nil {
		_ = h.in.Close()
	}
	_ = h.out.Close()
	select {
	case <-h.done:
	case <-time.After(helperGrace):
		_ = kill(func(mark uint32) bool { return mark == h.mark })
	}
}

// helperGrace is how long a helper may take to tidy up, once its input ended.
const helperGrace = 2 * time.Second

// files lets a helper speak with the host. PID 1 only carries bytes.
func (s *session) files(stream *yamux.Stream, m *wire.FileRequest) {
	h, err := s.g.helper("files", true)
	if err != nil {
		_ = wire.Write(stream, &wire.FileReply{Failure: *failure(err, "helper", "")})
		return
	}
	s.own(h.mark, false)
	defer h.close()
	if wire.Write(h.in, m) != nil {
		s.g.unlessEnding()
		_ = stream.Close() // without an answer: the helper has ended
		return
	}
	go func() {
		_, _ = io.Copy(h.in, stream) // until the host closes, or the helper reads no more
		_ = h.in.Close()
		hangUp(stream)
		// A helper that does not take this for its end is ended.
		time.AfterFunc(helperGrace, func() { _ = h.out.SetReadDeadline(past) })
	}()
	_, _ = io.Copy(stream, h.out)
	s.g.unlessEnding()
	// Nothing more comes: without this the host would wait for the answer of
	// a helper that the workload has ended, or left no room.
	_ = stream.Close()
}
