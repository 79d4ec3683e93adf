package pid1

import (
	"bufio"
	"io"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// framed writes content as frames.
type framed struct{ w *bufio.Writer }

func (f framed) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		part := b[sent:min(len(b), sent+wire.MaxFrame)]
		if err := wire.WriteFrameHead(f.w, wire.TagStdout, len(part)); err != nil {
			return sent, err
		}
		n, err := f.w.Write(part)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return len(b), nil
}

// last ends content, with what went wrong if something did.
func last(w *bufio.Writer, err error) error {
	if err != nil {
		_, err = w.Write(wire.AppendFrame(nil, wire.TagError, wire.Marshal(failureOf(err))))
		return err
	}
	return wire.WriteFrameHead(w, wire.TagEnd, 0)
}

// content reads frames as content. Its end is the end frame; anything else is
// a cut.
type content struct{ frames *wire.Frames }

var _ io.Reader = content{}

func (c content) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	_, n, err := c.frames.Read(b)
	return n, err
}
