//go:build linux

package pid1

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// newInlet is an inlet as PID 1 makes it, and what its owner writes to.
func newInlet(t *testing.T) (*inlet, *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "inlet"), os.NewFile(uintptr(fds[1]), "owner")
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return &inlet{f: r}, w
}

func TestAnInletGivesAllThatItsOwnerSays(t *testing.T) {
	i, w := newInlet(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	wrote := make(chan error, 1)
	go func() {
		_, err := w.Write(sent)
		wrote <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(i, got); err != nil || !bytes.Equal(got, sent) {
		t.Error("what came is not what was sent", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	i.came = plenty
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if n, err := i.Read(got); n != 1 || err != nil || i.width != wide {
		t.Errorf("a pipe that bulk came through is %d bytes wide; %d, %v", i.width, n, err)
	}
	// Now nothing comes, and the width is given back before something does.
	read := make(chan error, 1)
	go func() {
		n, err := i.Read(got)
		if n != 1 {
			err = errors.Join(err, io.ErrShortWrite)
		}
		read <- err
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if n, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || n == narrow {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it keeps the pipe wide")
		}
	}
	_, err := w.WriteString("x")
	if err = errors.Join(err, <-read); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	if n, err := i.Read(got); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestAnInletSeesTheEndWhileItWaits(t *testing.T) {
	i, w := newInlet(t)
	ended := make(chan error, 1)
	go func() { _, err := i.Read(make([]byte, 1)); ended <- err }()
	_ = w.Close()
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// conn reads from r alone.
type conn struct{ io.Reader }

func (conn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (conn) Close() error              { return nil }

func frameOf(kind byte, n int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, kind, 0, 0, 0, 0, 0, 1}, uint32(n))
	if kind == muxData {
		b = append(b, bytes.Repeat([]byte{byte(n)}, n)...)
	}
	return b
}

func TestReadingAheadChangesNoByte(t *testing.T) {
	var all []byte
	for _, n := range []int{0, 1, 5, 4 << 10, wire.MaxFrame - 1, wire.MaxFrame, wire.MaxFrame + 1, 2*wire.MaxFrame + 3} {
		all = append(all, frameOf(muxData, n)...)
		all = append(all, frameOf(1, 1<<30)...) // a window update, whose length is no body's
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole":        func(r io.Reader) io.Reader { return r },
		"by halves":    iotest.HalfReader,
		"by the byte":  iotest.OneByteReader,
		"with the end": iotest.DataErrReader,
	} {
		got, err := io.ReadAll(readAhead(conn{cut(bytes.NewReader(all))}))
		if err != nil || !bytes.Equal(got, all) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(all), err)
		}
	}
}

// Nothing of a frame is handed on before its last byte is there: who reads it
// holds a lock meanwhile.
func TestReadingAheadHandsOnWholeFrames(t *testing.T) {
	frame := frameOf(muxData, wire.MaxFrame)
	r, w := io.Pipe()
	a := readAhead(conn{r})
	go func() {
		_, _ = w.Write(frame[:len(frame)-1])
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	if n, err := a.Read(make([]byte, len(frame))); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of a frame that is not whole it gave %d bytes, %v", n, err)
	}
}
