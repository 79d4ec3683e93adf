package gateway

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

var errBulk = errors.New("it is worth a pipe")

// cups are lent while there is something to carry.
var cups = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// sip copies by small pieces, until src ends or much has passed.
func sip(dst io.Writer, src net.Conn) error {
	sc, ok := src.(syscall.Conn)
	if !ok {
		return errBulk
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return errBulk
	}
	for passed := 0; passed < bulk; {
		var cup *[16 << 10]byte
		var n int
		var rerr error
		err := raw.Read(func(fd uintptr) bool {
			cup, _ = cups.Get().(*[16 << 10]byte)
			for {
				n, rerr = syscall.Read(int(fd), cup[:])
				if !errors.Is(rerr, syscall.EINTR) {
					break
				}
			}
			if errors.Is(rerr, syscall.EAGAIN) {
				cups.Put(cup)
				return false // wait, holding nothing
			}
			return true
		})
		if err != nil {
			return err
		}
		if rerr == nil && n > 0 {
			_, rerr = dst.Write(cup[:n])
		}
		cups.Put(cup)
		if rerr != nil {
			return rerr
		}
		if n == 0 {
			return nil
		}
		passed += n
	}
	return errBulk
}
