package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// ways are the two ends between a gateway and a relay.
func ways(t testing.TB) (gate, mate *net.UnixConn) {
	t.Helper()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out [2]*net.UnixConn
	for i, fd := range ends {
		c, err := connOf(fd)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = c.(*net.UnixConn) //nolint:forcetypeassert // it is one
		_ = out[i].SetDeadline(time.Now().Add(limit))
		t.Cleanup(func() { _ = c.Close() })
	}
	return out[0], out[1]
}

func TestAnOrderArrivesWhole(t *testing.T) {
	t.Parallel()
	gate, mate := ways(t)
	a, b := pair(t)
	far, near := pair(t)
	want := gateway.Passage{Client: b, Server: near, Said: bytes.Repeat([]byte("said"), gateway.MaxSaid/4), Port: 443}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for id := range uint32(3) {
			if _, err := sendOrder(gate, id+7, want); err != nil {
				t.Error(err)
			}
		}
	})
	for want7 := range uint32(3) {
		id, p, err := receiveOrder(mate)
		if err != nil || id != want7+7 || p.Port != 443 || !bytes.Equal(p.Said, want.Said) {
			t.Fatalf("%d, %d bytes to %d, %v", id, len(p.Said), p.Port, err)
		}
		if _, err := p.Client.Write([]byte("c")); err != nil {
			t.Error(err)
		}
		if _, err := p.Server.Write([]byte("s")); err != nil {
			t.Error(err)
		}
		for c, w := range map[net.Conn]string{a: "c", far: "s"} {
			got := make([]byte, 1)
			if _, err := io.ReadFull(c, got); err != nil || string(got) != w {
				t.Errorf("%q, %v", got, err)
			}
		}
		_ = p.Client.Close()
		_ = p.Server.Close()
	}
}

// What a relay cannot take ends that connection, and no other.
func TestAnOrderWithoutItsSockets(t *testing.T) {
	t.Parallel()
	gate, mate := ways(t)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { carry(mate) })
	defer gate.Close()
	if id, _, err := readReport(gate); err != nil || id != ready {
		t.Fatal(id, err)
	}
	for id := range uint32(2) {
		header := make([]byte, headerLen)
		binary.BigEndian.PutUint32(header, id+1)
		binary.BigEndian.PutUint32(header[4:], 2)
		if _, err := gate.Write(append(header, "GE"...)); err != nil {
			t.Fatal(err)
		}
		if got, why, err := readReport(gate); err != nil || got != id+1 || why != egress.Capacity {
			t.Errorf("%d, %q, %v", got, why, err)
		}
	}
}

func TestAnOrderThatIsTooLong(t *testing.T) {
	t.Parallel()
	gate, mate := ways(t)
	header := make([]byte, headerLen)
	binary.BigEndian.PutUint32(header[4:], gateway.MaxSaid+1)
	if _, err := gate.Write(header); err != nil {
		t.Fatal(err)
	}
	if _, _, err := receiveOrder(mate); !errors.Is(err, errNonsense) {
		t.Error(err)
	}
	_ = gate.Close()
	if _, _, err := receiveOrder(mate); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add(report(ready, ""))
	f.Add(report(7, egress.OtherHost))
	f.Add(report(7, "made up"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		id, why, err := readReport(r)
		if err != nil {
			return
		}
		if why != "" && !why.Known() {
			t.Errorf("%q is no reason", why)
		}
		if want := b[:len(b)-r.Len()]; !bytes.Equal(report(id, why), want) {
			t.Errorf("%x is read, and written as %x", want, report(id, why))
		}
	})
}
