package gateway

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
)

const (
	// bulk is how much a connection carries before it is given what only a busy
	// one needs: on Linux, a pipe in the kernel through which bytes go from one
	// socket to the other without being copied, lent for as long as there is
	// something to carry. Most connections say little, and are silent for long.
	bulk = 256 << 10

	// MaxPipes is how many pipes a process has at a time, each of two
	// descriptors; who gets none copies.
	MaxPipes = 64
)

// pour copies from src to dst until src ends, as pourN does.
func pour(dst io.Writer, src net.Conn) error {
	if err := pourN(dst, src, math.MaxInt64); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// pass writes the next n bytes of r, read no further. It waits for them with no
// memory but that of r. src is what r reads from, or nil: much is poured from it.
func pass(dst io.Writer, r *bufio.Reader, src net.Conn, n int64) error {
	for n > 0 {
		if r.Buffered() == 0 && src != nil && n > int64(r.Size()) {
			return whole(pourN(dst, src, n))
		}
		if _, err := r.Peek(1); err != nil {
			return whole(err)
		}
		piece, err := r.Peek(int(min(n, int64(r.Buffered()))))
		if err == nil {
			_, err = dst.Write(piece)
		}
		if err != nil {
			return err
		}
		_, _ = r.Discard(len(piece))
		n -= int64(len(piece))
	}
	return nil
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
