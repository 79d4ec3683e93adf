package gateway

import (
	"bufio"
	"io"
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

// drain writes what r has read ahead.
func drain(dst io.Writer, r *bufio.Reader) error {
	ahead, err := r.Peek(r.Buffered())
	if err == nil && len(ahead) > 0 {
		_, err = dst.Write(ahead)
		_, _ = r.Discard(len(ahead))
	}
	return err
}
