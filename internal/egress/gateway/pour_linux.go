package gateway

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// pourN copies so many bytes from src to dst, and reads no more; io.EOF says
// that src has ended before. While src is silent it holds no memory and no
// descriptor, if it is a socket.
func pourN(dst io.Writer, src net.Conn, left int64) error {
	from, to := rawOf(src), rawOf(dst)
	if from == nil {
		_, err := io.CopyN(dst, src, left)
		return err
	}
	var v vessel
	var n int
	var failed error
	passed := 0
	fill := func(fd uintptr) bool {
		v = lend(to != nil && passed >= bulk)
		n, failed = v.fill(int(fd), int(min(left, pipeSize)))
		if errors.Is(failed, syscall.EAGAIN) {
			v.putBack()
			v = nil
			return false // wait, holding nothing
		}
		return true
	}
	for left > 0 {
		if err := from.Read(fill); err != nil {
			return err
		}
		if failed == nil && n > 0 {
			failed = v.empty(dst, to, n)
		}
		v.putBack()
		v = nil
		if failed == nil && n == 0 {
			failed = io.EOF
		}
		if failed != nil {
			return failed
		}
		left -= int64(n)
		passed = min(passed+n, bulk)
	}
	return nil
}

// rawOf is what lies below a socket, nil below anything else.
func rawOf(c any) syscall.RawConn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// vessel takes bytes from one socket to another.
type vessel interface {
	// fill reads what a socket has now and is wanted of it, EAGAIN if that is
	// nothing.
	fill(fd, most int) (int, error)
	// empty writes all of the n bytes, to dst or to what lies below it.
	empty(dst io.Writer, to syscall.RawConn, n int) error
	// putBack ends the loan.
	putBack()
}

// lend gives a pipe, if one is wanted and there is one, else a cup.
func lend(wanted bool) vessel {
	if wanted {
		if p := pipes.get(); p != nil {
			return p
		}
	}
	return cups.Get().(vessel) //nolint:forcetypeassert // there is nothing else in it
}

// again repeats what a signal has interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
