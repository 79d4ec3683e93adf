package gateway

import (
	"bufio"
	"io"
	"net"
)

// bulk is how much a connection carries before it is given what only a busy
// one needs: on Linux, a pipe in the kernel through which bytes go from one
// socket to the other without being copied. Pipes are descriptors, of which
// there are few; most connections say little, and are silent for long.
const bulk = 256 << 10

// pour copies from src to dst until src ends. While src is silent it holds no
// memory and no descriptor, where the system can wait without.
func pour(dst io.Writer, src net.Conn) error {
	err := sip(dst, src)
	if err == errBulk { //nolint:errorlint // it is ours alone
		_, err = io.Copy(dst, src)
	}
	return err
}

// drain writes what r has read ahead.
func drain(dst io.Writer, r *bufio.Reader) error {
	ahead, err := r.Peek(r.Buffered())
	if err == nil && len(ahead) > 0 {
		_, err = dst.Write(ahead)
		_, _ = r.Discard(len(ahead))
	}
	return err
}
