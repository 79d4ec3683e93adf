package pid1

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inlet is the owner's other pipe, read by one goroutine at a time. Go never
// polls it, for the reason that it does not poll an outlet.
type inlet struct {
	f     *os.File // does not block, which Go does not know
	width int
	came  int // since it was last dry for longer than a few naps
}

// Read waits for something to come: while bulk does, by the clock.
func (i *inlet) Read(b []byte) (n int, err error) {
	raw, err := i.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	for napped := 0; ; {
		if cerr := raw.Control(func(fd uintptr) { n, err = readNow(fd, b) }); cerr != nil {
			return 0, cerr
		}
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			if i.came += n; i.came >= plenty && i.width == 0 {
				i.width = setWidth(raw, wide)
			}
			return n, nil
		case errnoOf(err) != unix.EAGAIN:
			return 0, err
		case i.came >= plenty && napped < 2*naps:
			napped++
			runtime.Gosched() // those who wait for what came have their turn first
			nap(emptyNap)
		default:
			i.came = 0
			if i.width > 0 && setWidth(raw, narrow) == narrow {
				i.width = 0
			}
			if cerr := raw.Control(func(fd uintptr) { err = await(fd) }); cerr != nil {
				return 0, cerr
			}
			if err != nil {
				return 0, err
			}
		}
	}
}

// await returns once there is something to read, or the end, from a
// descriptor that Go does not poll.
func await(fd uintptr) error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return err
		}
	}
}

func (i *inlet) Close() error { return i.f.Close() }
