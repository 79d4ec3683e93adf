package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listener makes sockets on addresses that the gateway has not taken yet, for a
// sandbox that is on the same machine: what they accept sends as fast as it is
// taken. A host may have chosen a congestion control that measures and paces
// (bbr), which suits the internet, and on a link that is memory halves what goes
// through a relay. reno is in every kernel.
func Listener() net.ListenConfig {
	return net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
			if err == nil && network == "tcp4" {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
			}
		})
		return errors.Join(cerr, err)
	}}
}

// Listen listens for TCP.
func Listen(ctx context.Context, addr netip.AddrPort) (*net.TCPListener, error) {
	lc := Listener()
	l, err := lc.Listen(ctx, "tcp4", addr.String())
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a listener of type %T", l), l.Close())
	}
	return tcp, nil
}

// Meant is where a connection was meant to go before the packet filter turned
// it aside.
func Meant(c *net.TCPConn) (netip.AddrPort, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var to *unix.IPv6Mreq // whose first 16 bytes take a sockaddr_in
	if cerr := raw.Control(func(fd uintptr) { to, err = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, unix.SO_ORIGINAL_DST) }); cerr != nil {
		return netip.AddrPort{}, cerr
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	b := to.Multiaddr
	if binary.NativeEndian.Uint16(b[:]) != unix.AF_INET {
		return netip.AddrPort{}, errors.New("no IPv4 address")
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), nil
}

// ListenPacket listens for UDP.
func ListenPacket(ctx context.Context, addr netip.AddrPort) (*net.UDPConn, error) {
	lc := Listener()
	c, err := lc.ListenPacket(ctx, "udp4", addr.String())
	if err != nil {
		return nil, err
	}
	udp, ok := c.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a socket of type %T", c), c.Close())
	}
	return udp, nil
}
