package wire

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// FuzzWire gives any bytes to every decoder there is: to each message, to the
// greeting, and to the frames of content. How the bytes are cut never matters,
// what decodes encodes to something that decodes alike, and memory follows
// what came, not what was announced.
func FuzzWire(f *testing.F) {
	for _, m := range messages() {
		var b bytes.Buffer
		_ = Write(&b, m)
		f.Add(b.Bytes())
		b.Reset()
		_ = WriteHello(&b, Protocol, m)
		f.Add(b.Bytes())
	}
	f.Add([]byte("\x01\x00\x00\x00\x03abc\x00\x00\x00\x00\x00"))
	f.Add(AppendFrame(nil, TagError, Marshal(&Failure{Code: "x"})))
	f.Add([]byte("\x00\x3f\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, m := range messages() {
			one, other := fresh(m), fresh(m)
			err, cut := ReadReply(bytes.NewReader(b), one), ReadReply(iotest.OneByteReader(bytes.NewReader(b)), other)
			if (err == nil) != (cut == nil) || err == nil && !cmp.Equal(one, other) {
				t.Fatalf("%T: %v, and byte by byte %v", m, err, cut)
			}
			if Unmarshal(b, one) != nil {
				continue
			}
			if err := Unmarshal(Marshal(one), other); err != nil || !cmp.Equal(one, other) {
				t.Fatalf("%T does not come back: %v %s", m, err, cmp.Diff(one, other))
			}
		}
		var one, other GuestHello
		p1, err1 := ReadHello(bytes.NewReader(b), &one)
		p2, err2 := ReadHello(iotest.OneByteReader(bytes.NewReader(b)), &other)
		if p1 != p2 || (err1 == nil) != (err2 == nil) || err1 == nil && !cmp.Equal(one, other) {
			t.Fatalf("greeting: %v, and byte by byte %v", err1, err2)
		}
		_, _ = ReadHello(bytes.NewReader(b), &HostHello{})
		whole, wholeErr := contents(t, bytes.NewReader(b), (*Frames).Next)
		cut, cutErr := contents(t, iotest.OneByteReader(bytes.NewReader(b)), (*Frames).Next)
		read, readErr := contents(t, iotest.HalfReader(bytes.NewReader(b)), func(f *Frames) (Tag, []byte, error) {
			var buf [7]byte
			tag, n, err := f.Read(buf[:])
			return tag, buf[:n], err
		})
		if whole != cut || whole != read || wholeErr.Error() != cutErr.Error() || wholeErr.Error() != readErr.Error() {
			t.Fatalf("frames: %q %v\n%q %v\n%q %v", whole, wholeErr, cut, cutErr, read, readErr)
		}
		runtime.ReadMemStats(&after)
		// Every decoder twice, and a list of the smallest items is the
		// worst: 200 bytes for one.
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20+uint64(len(b))*16<<10 {
			t.Fatalf("%d MiB were allocated for %d bytes", got>>20, len(b))
		}
	})
}

// contents reads frames to their end, each byte with whose it is.
func contents(t *testing.T, r io.Reader, next func(*Frames) (Tag, []byte, error)) (string, error) {
	t.Helper()
	var got []byte
	for f := NewFrames(r); ; {
		tag, piece, err := next(f)
		for _, c := range piece {
			got = append(got, byte(tag), c)
		}
		if err != nil {
			if len(piece) > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%q with %v", piece, err)
			}
			return string(got), err
		}
	}
}
