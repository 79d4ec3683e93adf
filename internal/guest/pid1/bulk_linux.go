package pid1

import (
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a program writes passes two pipes here: its own and the owner's. Bulk
// costs little to copy and much to wait for, since whoever waits for a pipe is
// woken for every few KiB that go in or out. So whoever moves bulk waits by the
// clock instead, in naps that are shorter than a wide pipe takes to run full or
// dry, and reads and writes without a word to Go's scheduler, which none of
// these calls can block.

const (
	// plenty is how much makes a program's output bulk.
	plenty = 1 << 20
	// wide is a pipe's width then. The others keep the usual one, since all
	// pipes of a host's users without privilege share a quota.
	wide   = 1 << 20
	narrow = 64 << 10
	// pageful is read at least while bulk flows.
	pageful = 4 << 10

	emptyNap = 200 * time.Microsecond // until a page is many
	fullNap  = 500 * time.Microsecond // until there is room for many
	calmNap  = time.Millisecond
	naps     = 4                     // that may pass without a byte; the rest is waiting
	longest  = 50 * time.Millisecond // between two looks at a pipe that nobody empties
)

// nap stops this thread and what else would run on it.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// calm keeps Go's second processor busy with naps while bulk flows. Free, it
// would be woken, and a thread with it, each time one goroutine hands bytes to
// the next, which costs more than they do.
type calm struct {
	flows   atomic.Bool // since the last nap
	running atomic.Bool
}

// keep is called whenever bulk has flowed.
func (c *calm) keep() {
	c.flows.Store(true)
	if !c.running.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.running.Store(false)
		for idle := 0; idle < naps; idle++ {
			nap(calmNap)
			runtime.Gosched() // what else waits has its turn
			if c.flows.Swap(false) {
				idle = 0
			}
		}
	}()
}

// readNow reads what is there, from a descriptor that does not block.
func readNow(fd uintptr, b []byte) (int, error) { return transfer(unix.SYS_READ, fd, b) }

// writeNow writes what there is room for, to a descriptor that does not block.
func writeNow(fd uintptr, b []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, b) }

func transfer(call, fd uintptr, b []byte) (int, error) {
	for {
		switch n, _, errno := unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))); errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// readPipe is f.Read; while bulk flows it looks by the clock a few times,
// before it waits.
func readPipe(f *os.File, b []byte, bulk bool) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	rerr := raw.Read(func(fd uintptr) bool {
		n, err = readNow(fd, b)
		for i := 0; bulk && errnoOf(err) == unix.EAGAIN && i < naps; i++ {
			nap(emptyNap)
			n, err = readNow(fd, b)
		}
		return errnoOf(err) != unix.EAGAIN
	})
	switch {
	case rerr != nil:
		return 0, rerr
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

// outlet is the owner's pipe, written to by one goroutine at a time. It is
// never polled: the kernel wakes whoever once polled a pipe for all that is
// taken out of it.
type outlet struct {
	f      *os.File      // does not block, which Go does not know
	width  int           // 0: the usual one
	pause  time.Duration // after which there is much room again
	filled time.Time     // the last time
}

// Write writes all of b, however long the owner takes.
func (o *outlet) Write(b []byte) (done int, err error) {
	raw, err := o.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if o.width > 0 && time.Since(o.filled) > time.Second && setWidth(raw, narrow) == narrow {
		o.width = 0
	}
	napped, sleep := 0, time.Millisecond
	for done < len(b) {
		n := 0
		if cerr := raw.Control(func(fd uintptr) { n, err = writeNow(fd, b[done:]) }); cerr != nil {
			return done, cerr
		}
		if n > 0 {
			done += n
			napped, sleep = 0, time.Millisecond
		}
		if done == len(b) {
			break
		}
		if err != nil && errnoOf(err) != unix.EAGAIN {
			return done, err
		}
		o.filled = time.Now()
		switch {
		case o.width == 0:
			o.width = setWidth(raw, wide)
			o.pause = max(fullNap*time.Duration(o.width)/wide, fullNap/8)
		case napped < naps:
			napped++
			nap(o.pause)
		default:
			time.Sleep(sleep)
			sleep = min(2*sleep, longest)
		}
	}
	return done, nil
}

func (o *outlet) Close() error { return o.f.Close() }

// widen makes a pipe wide, if the quota has room.
func widen(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		setWidth(raw, wide)
	}
}

// setWidth returns what the width is afterwards: the kernel refuses what is
// over a quota, or too narrow for what is in the pipe.
func setWidth(raw syscall.RawConn, width int) int {
	have := narrow
	_ = raw.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, width)
		if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
			have = n
		}
	})
	return have
}
