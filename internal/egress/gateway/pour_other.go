//go:build !linux

package gateway

import (
	"io"
	"net"
)

// pour copies from src to dst until src ends.
func pour(dst io.Writer, src net.Conn) error {
	_, err := io.Copy(dst, src)
	return err
}
