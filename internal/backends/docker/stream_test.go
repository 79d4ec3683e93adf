package docker

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// wireConn is a connection of which only reading matters.
type wireConn struct {
	net.Conn
	io.Reader
}

func (c wireConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func frame(kind byte, data string) string {
	head := []byte{kind, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[4:], uint32(len(data)))
	return string(head) + data
}

func TestM63StreamTakesTheFramesApart(t *testing.T) {
	in := frame(1, "hel") + frame(2, "oops\x1b[31m") + frame(1, "") + frame(1, "lo") + frame(2, strings.Repeat("e", 3*maxStderr)+"end") + frame(1, strings.Repeat("x", 200_000))
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)), "in halves": iotest.HalfReader(strings.NewReader(in))} {
		s := newStream(wireConn{Reader: r})
		out, err := io.ReadAll(s)
		if err != nil || string(out) != "hello"+strings.Repeat("x", 200_000) {
			t.Errorf("%s: %d bytes, %v", name, len(out), err)
		}
		if said := s.said(); len(said) > maxStderr || !strings.HasSuffix(said, "end") || strings.ContainsRune(said, 0x1b) {
			t.Errorf("%s: it said %d bytes", name, len(said))
		}
	}
}

func TestStreamEndsWithItsContainer(t *testing.T) {
	for name, in := range map[string]string{"in a header": frame(1, "a")[:5], "in output": frame(1, "abc")[:9], "in stderr": frame(2, "abc")[:9]} {
		s := newStream(wireConn{Reader: strings.NewReader(in)})
		if _, err := io.ReadAll(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]string{"a raw stream": "GET / HTTP/1.1\r\n", "a huge frame": "\x01\x00\x00\x00\xff\xff\xff\xff"} {
		s := newStream(wireConn{Reader: strings.NewReader(in)})
		if _, err := io.ReadAll(s); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(frame(1, "a") + frame(2, "b")))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		s := newStream(wireConn{Reader: bytes.NewReader(in)})
		out, _ := io.ReadAll(s)
		if len(out)+8 > len(in)+8 || len(s.said()) > maxStderr {
			t.Errorf("%d bytes out of %d", len(out), len(in))
		}
	})
}
