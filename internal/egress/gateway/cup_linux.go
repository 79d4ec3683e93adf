package gateway

import (
	"io"
	"sync"
	"syscall"
)

// cup is memory.
type cup [16 << 10]byte

var cups = sync.Pool{New: func() any { return new(cup) }}

func (c *cup) fill(fd, most int) (int, error) {
	return again(func() (int, error) { return syscall.Read(fd, c[:min(most, len(c))]) })
}

func (c *cup) empty(dst io.Writer, _ syscall.RawConn, n int) error {
	_, err := dst.Write(c[:n])
	return err
}

func (c *cup) putBack() { cups.Put(c) }
