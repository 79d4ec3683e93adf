package wire

import "io"

// Join makes yamux send a header together with its body: one write to a pipe,
// and one message of an engine's, in place of two. It is for one writer.
func Join(conn io.ReadWriteCloser) io.ReadWriteCloser { return &joiner{ReadWriteCloser: conn} }

type joiner struct {
	io.ReadWriteCloser
	buf []byte
}

const muxHeader = 12

func (j *joiner) Write(b []byte) (int, error) {
	if len(j.buf) == 0 && len(b) == muxHeader && b[1] == 0 && b[8]|b[9]|b[10]|b[11] != 0 {
		j.buf = append(j.buf, b...) // a data frame's header; its body follows
		return len(b), nil
	}
	if len(j.buf) == 0 {
		return j.ReadWriteCloser.Write(b)
	}
	j.buf = append(j.buf, b...)
	_, err := j.ReadWriteCloser.Write(j.buf)
	j.buf = j.buf[:0]
	return len(b), err
}
