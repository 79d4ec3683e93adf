package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// pairOf gives both ends of a TCP connection.
func pairOf(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func TestEveryByteIsPouredOnce(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"nothing": 0, "a byte": 1, "a cup": 16 << 10, "just before it is worth a pipe": bulk - 1, "worth a pipe": bulk, "much more": 5<<20 + 7} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := make([]byte, n)
			for i := range want {
				want[i] = byte(i * 7 >> 3)
			}
			from, in := pairOf(t)
			out, to := pairOf(t)
			var all sync.WaitGroup
			defer all.Wait()
			all.Go(func() {
				_, _ = from.Write(want)
				closeWrite(from)
			})
			all.Go(func() {
				if err := pour(out, in); err != nil {
					t.Error(err)
				}
				closeWrite(out)
			})
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, %v", len(got), n, err)
			}
		})
	}
}

func TestPouringEndsWithEitherSide(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(from, in, out, to net.Conn){
		"the source is closed here":    func(_, in, _, _ net.Conn) { _ = in.Close() },
		"the source is closed there":   func(from, _, _, _ net.Conn) { _ = from.Close() },
		"nobody takes what it carries": func(from, _, _, to net.Conn) { _ = to.Close(); go flood(from) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, in := pairOf(t)
			out, to := pairOf(t)
			done := make(chan struct{})
			go func() { _ = pour(out, in); close(done) }()
			end(from, in, out, to)
			ctx, cancel := context.WithTimeout(t.Context(), DialTimeout)
			defer cancel()
			select {
			case <-done:
			case <-ctx.Done():
				t.Error("it goes on")
			}
		})
	}
}

func TestNoMoreIsPassedThanIsWanted(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, readAhead, readAhead + 1, 16<<10 + 1, bulk + 1, 3<<20 + 7} {
		for name, short := range map[string]bool{"and more follows": false, "and it ends before": true} {
			t.Run(fmt.Sprintf("%d bytes %s", n, name), func(t *testing.T) {
				t.Parallel()
				want := make([]byte, n)
				for i := range want {
					want[i] = byte(i * 7 >> 3)
				}
				after, wanted := "the next", int64(n)
				if short {
					after, wanted = "", int64(n)+1
				}
				from, in := pairOf(t)
				out, to := pairOf(t)
				r := bufio.NewReaderSize(in, readAhead)
				var all sync.WaitGroup
				defer all.Wait()
				all.Go(func() {
					_, _ = from.Write(want)
					_, _ = io.WriteString(from, after)
					closeWrite(from)
				})
				all.Go(func() {
					if err := pass(out, r, in, wanted); (err == nil) == short || short && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Error(err)
					}
					if rest, err := io.ReadAll(r); err != nil || string(rest) != after {
						t.Errorf("%d bytes remain, %v", len(rest), err)
					}
					closeWrite(out)
				})
				if got, err := io.ReadAll(to); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes of %d, %v", len(got), n, err)
				}
			})
		}
	}
}

// A long body is not read by its reader: its chunks are followed all the same.
func TestLongChunksAreFollowedOverSockets(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for _, n := range []int{1, readAhead, 1 << 20, 5, bulk} {
		fmt.Fprintf(&in, "%x\r\n%s\r\n", n, strings.Repeat("x", n))
	}
	in.WriteString("0\r\n\r\n")
	from, src := pairOf(t)
	out, to := pairOf(t)
	r := bufio.NewReaderSize(src, readAhead)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		_, _ = io.WriteString(from, in.String()+"the next")
		closeWrite(from)
	})
	all.Go(func() {
		if err := (body{chunked: true}).send(out, r, src); err != nil {
			t.Error(err)
		}
		if rest, err := io.ReadAll(r); err != nil || string(rest) != "the next" {
			t.Errorf("%d bytes remain, %v", len(rest), err)
		}
		closeWrite(out)
	})
	if got, err := io.ReadAll(to); err != nil || string(got) != in.String() {
		t.Errorf("%d bytes of %d, %v", len(got), in.Len(), err)
	}
}

func flood(c net.Conn) {
	for {
		if _, err := c.Write(make([]byte, 1<<16)); err != nil {
			return
		}
	}
}

func TestWhatWasReadAheadIsDrained(t *testing.T) {
	t.Parallel()
	r := bufio.NewReader(strings.NewReader("ahead"))
	if _, err := r.Peek(5); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := drain(&got, r); err != nil || got.String() != "ahead" || r.Buffered() != 0 {
		t.Errorf("%q, %d left, %v", got.String(), r.Buffered(), err)
	}
}
