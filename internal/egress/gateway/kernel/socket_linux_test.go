package kernel

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatAListenerAcceptsSendsUnpacedWhateverTheHostChose(t *testing.T) {
	l, err := Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	if cerr := raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) }); cerr != nil {
		t.Fatal(cerr)
	}
	if err != nil || name != "reno" {
		t.Errorf("%q, %v", name, err)
	}
}
