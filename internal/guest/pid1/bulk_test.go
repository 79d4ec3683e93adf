//go:build linux

package pid1

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newOutlet is an outlet as PID 1 makes it, and what its owner reads from.
func newOutlet(t *testing.T) (*outlet, *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "owner"), os.NewFile(uintptr(fds[1]), "outlet")
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return &outlet{f: w}, r
}

func TestAnOutletWritesAllThatItsOwnerTakes(t *testing.T) {
	o, r := newOutlet(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	wrote := make(chan error, 1)
	go func() {
		n, err := o.Write(sent)
		if n != len(sent) {
			err = errors.Join(err, io.ErrShortWrite)
		}
		wrote <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, sent) {
		t.Error("what came is not what was sent", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if o.width != wide {
		t.Errorf("a pipe that ran full is %d bytes wide", o.width)
	}
}

func TestAnOutletGivesItsWidthBack(t *testing.T) {
	o, r := newOutlet(t)
	o.width, o.filled = wide, time.Now().Add(-2*time.Second)
	if _, err := o.Write([]byte("x")); err != nil || o.width != 0 {
		t.Error(o.width, err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func TestAnOutletTellsThatNobodyReads(t *testing.T) {
	o, r := newOutlet(t)
	_ = r.Close()
	if n, err := o.Write([]byte("x")); n != 0 || !errors.Is(err, unix.EPIPE) {
		t.Error(n, err)
	}
}

func TestReadPipe(t *testing.T) {
	for name, bulk := range map[string]bool{"waiting": false, "by the clock": true} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			b := make([]byte, 16)
			if err := r.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if n, err := readPipe(r, b, bulk); n != 0 || !os.IsTimeout(err) {
				t.Error("an empty pipe:", n, err)
			}
			_ = r.SetReadDeadline(time.Time{})
			_, _ = w.WriteString("abc")
			if n, err := readPipe(r, b, bulk); string(b[:n]) != "abc" || err != nil {
				t.Error(n, err)
			}
			_ = w.Close()
			if n, err := readPipe(r, b, bulk); n != 0 || !errors.Is(err, io.EOF) {
				t.Error("a pipe without writers:", n, err)
			}
		})
	}
}

func TestCalmEndsByItself(t *testing.T) {
	var c calm
	c.keep()
	c.keep()
	for deadline := time.Now().Add(10 * time.Second); c.running.Load(); {
		if time.Now().After(deadline) {
			t.Fatal("it naps on though nothing flows")
		}
		time.Sleep(time.Millisecond)
	}
}
