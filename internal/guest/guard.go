package guest

import (
	"encoding/binary"
	"io"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// guard reads the multiplexer's frames before it does and ends the connection
// at any that our guest does not send: it opens no stream and asks for no
// answer, so that nothing from inside makes the host spend memory of its own
// accord. What it lets through is bounded by the windows of streams that the
// host opened.
type guard struct {
	io.ReadWriteCloser
	head [muxHead]byte
	have int    // bytes of head
	skip uint32 // bytes of the current frame's body still to come
}

const (
	muxHead   = 12
	muxWindow = 256 << 10

	muxData, muxWindowUpdate, muxPing, muxGoAway = 0, 1, 2, 3

	flagSYN = 1
)

func (g *guard) Read(b []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(b)
	if !g.accept(b[:n]) {
		_ = g.Close()
		return 0, wire.ErrMalformed
	}
	return n, err
}

// accept follows the frames in b.
func (g *guard) accept(b []byte) bool {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(uint32(len(b)), g.skip)
			g.skip -= n
			b = b[n:]
			continue
		}
		n := copy(g.head[g.have:], b)
		g.have += n
		b = b[n:]
		if g.have < muxHead {
			return true
		}
		g.have = 0
		kind, flags := g.head[1], binary.BigEndian.Uint16(g.head[2:])
		id, length := binary.BigEndian.Uint32(g.head[4:]), binary.BigEndian.Uint32(g.head[8:])
		if g.head[0] != 0 || kind > muxGoAway || flags&flagSYN != 0 {
			return false
		}
		switch kind {
		case muxData:
			if length > muxWindow || id%2 == 0 {
				return false
			}
			g.skip = length
		case muxWindowUpdate:
			if id%2 == 0 {
				return false
			}
		case muxPing, muxGoAway:
		}
	}
	return true
}
