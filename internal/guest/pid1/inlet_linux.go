package pid1

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inlet is the owner's other pipe, read by one goroutine at a time. While
// little comes Go polls it, by a descriptor that is closed once bulk does: for
// the reason that an outlet is never polled.
type inlet struct {
	f     *os.File // does not block, which Go does not know
	width int      // 0: the usual one
	came  int      // without a pause
	last  time.Time

	mu     sync.Mutex
	polled *os.File // the same pipe, while little comes
	closed bool
}

// pause is what ends a row of reads.
const pause = 20 * time.Millisecond

// Read waits for something to come: while bulk does, by the clock.
func (i *inlet) Read(b []byte) (n int, err error) {
	raw, err := i.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if i.came >= plenty {
		if n, err = i.readBulk(raw, b); errnoOf(err) != unix.EAGAIN {
			return n, err
		}
		i.came = 0
		if i.width > 0 && setWidth(raw, narrow) == narrow {
			i.width = 0
		}
	}
	p, err := i.poll(raw)
	if err != nil {
		return 0, err
	}
	n, err = p.Read(b)
	now := time.Now()
	if now.Sub(i.last) > pause {
		i.came = 0
	}
	i.last = now
	if i.came += n; i.came >= plenty {
		i.unpoll()
		if i.width == 0 {
			i.width = setWidth(raw, wide)
		}
	}
	return n, err
}

// readBulk reads what is there or comes within a few naps; EAGAIN if nothing
// does.
func (i *inlet) readBulk(raw syscall.RawConn, b []byte) (n int, err error) {
	for napped := 0; ; napped++ {
		if cerr := raw.Control(func(fd uintptr) { n, err = readNow(fd, b) }); cerr != nil {
			return 0, cerr
		}
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case errnoOf(err) != unix.EAGAIN || napped == 2*naps:
			return n, err
		}
		runtime.Gosched() // those who wait for what came have their turn first
		nap(emptyNap)
	}
}

// poll gives the descriptor that Go polls.
func (i *inlet) poll(raw syscall.RawConn) (*os.File, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, os.ErrClosed
	}
	if i.polled == nil {
		again := -1
		var err error
		if cerr := raw.Control(func(fd uintptr) { again, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3) }); cerr != nil {
			return nil, cerr
		}
		if err != nil {
			return nil, err
		}
		i.polled = os.NewFile(uintptr(again), "owner")
	}
	return i.polled, nil
}

func (i *inlet) unpoll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.polled != nil {
		_ = i.polled.Close()
		i.polled = nil
	}
}

// Close ends a Read that waits.
func (i *inlet) Close() error {
	i.mu.Lock()
	i.closed = true
	p := i.polled
	i.mu.Unlock()
	err := i.f.Close()
	if p != nil {
		err = errors.Join(err, p.Close())
	}
	return err
}
