package pid1

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// ahead reads the multiplexer's frames before it does, and hands one on once
// all of it is there: the multiplexer holds a lock while it reads a body, on
// which whoever wants what came before would wait for the host.
type ahead struct {
	io.ReadWriteCloser
	r    *bufio.Reader
	rest int // bytes of the frame that is handed on
}

func readAhead(conn io.ReadWriteCloser) *ahead {
	return &ahead{ReadWriteCloser: conn, r: bufio.NewReaderSize(conn, muxHead+wire.MaxFrame)}
}

const muxHead, muxData = 12, 0

func (a *ahead) Read(b []byte) (int, error) {
	if a.rest == 0 {
		head, err := a.r.Peek(muxHead)
		if err != nil {
			return 0, err
		}
		a.rest = muxHead
		if head[1] == muxData {
			a.rest += int(binary.BigEndian.Uint32(head[8:]))
		}
		// Of a frame that is larger than the buffer, as much as it holds.
		if _, err := a.r.Peek(min(a.rest, a.r.Size())); err != nil {
			return 0, err
		}
	}
	n, err := a.r.Read(b[:min(len(b), a.rest)])
	a.rest -= n
	return n, err
}
