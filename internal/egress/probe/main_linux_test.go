package probe

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAResultThatCannotBeReadIsUnfinished(t *testing.T) {
	t.Parallel()
	o := Order{Attempt: "tcp-ssh"}
	for text, want := range map[string]bool{
		`{"attempt":"tcp-ssh","said":"connection refused","failed":true}`: false,
		`{"attempt":"tcp-ssh","failed":true,"unfinished":true}`:           true,
		`{"attempt":"tcp-smtp","failed":true}`:                            true,
		`{"attempt":"tcp-ssh","said":"conn`:                               true,
		``:                                                                true,
	} {
		if r := o.result([]byte(text)); r.Attempt != o.Attempt || r.Unfinished != want || !r.Failed {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func TestConnectTellsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	try := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		return connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
	}
	if err := try(); err != nil {
		t.Errorf("to a server: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := try(); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("to nobody: %v", err)
	}
}
