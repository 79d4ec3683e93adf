package gateway

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// duct is a pipe: memory of the kernel's, to which and from which it moves what
// sockets hold without copying it.
type duct struct {
	r, w int
	left int // bytes in it
}

const (
	// pipeSize is what a pipe holds, if its user may have so much.
	pipeSize = 1 << 20
	// keptPipes are kept for who wants one next.
	keptPipes = 4

	// Of linux/splice.h and linux/fcntl.h.
	moving     = 1 | 2 // SPLICE_F_MOVE, SPLICE_F_NONBLOCK
	setPipeLen = 1031  // F_SETPIPE_SZ
)

func (p *duct) fill(fd, most int) (int, error) {
	n, err := again(func() (int, error) {
		n, err := syscall.Splice(fd, nil, p.w, nil, most, moving)
		return int(n), err
	})
	p.left = n
	return n, err
}

func (p *duct) empty(_ io.Writer, to syscall.RawConn, _ int) error {
	var failed error
	err := to.Write(func(fd uintptr) bool {
		for p.left > 0 {
			var n int
			n, failed = again(func() (int, error) {
				n, err := syscall.Splice(p.r, nil, int(fd), nil, p.left, moving)
				return int(n), err
			})
			switch {
			case errors.Is(failed, syscall.EAGAIN):
				return false
			case failed == nil && n == 0:
				failed = io.ErrShortWrite
			}
			if failed != nil {
				return true
			}
			p.left -= n
		}
		return true
	})
	return errors.Join(err, failed)
}

func (p *duct) putBack() { pipes.put(p) }

func (p *duct) close() {
	_ = syscall.Close(p.r)
	_ = syscall.Close(p.w)
}

// pipes are this process's, which may have open so many files and no more.
var pipes pipeStore

// pipeStore lends pipes, MaxPipes at a time at most.
type pipeStore struct {
	mu   sync.Mutex
	made int // lent and kept
	kept []*duct
}

// get gives an empty pipe, or nil when there is none.
func (s *pipeStore) get() *duct {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.kept); n > 0 {
		p := s.kept[n-1]
		s.kept = s.kept[:n-1]
		return p
	}
	if s.made >= MaxPipes {
		return nil
	}
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil
	}
	s.made++
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), setPipeLen, pipeSize)
	return &duct{r: ends[0], w: ends[1]}
}

// put takes a pipe back. What is left in one belongs to nobody else.
func (s *pipeStore) put(p *duct) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.left == 0 && len(s.kept) < keptPipes {
		s.kept = append(s.kept, p)
		return
	}
	s.made--
	p.close()
}
