package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// datagram sends the sign, or what f makes of it, to an address.
func datagram(addr func(*try) netip.Addr, port uint16, f func(sign string) []byte) attempt {
	return func(t *try) (string, error) {
		payload := []byte(t.Sign)
		if f != nil {
			payload = f(t.Sign)
		}
		reply, err := t.udp(netip.AddrPortFrom(addr(t), port), payload)
		return string(reply), err
	}
}

func own(t *try) netip.Addr  { return t.Denied }
func own6(t *try) netip.Addr { return t.Denied6 }

func engine(t *try) netip.Addr { return t.Engine }

// shouted sends to everybody on the link.
func shouted(to ...string) attempt {
	return func(t *try) (string, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
		for _, to := range to {
			at := netip.MustParseAddrPort(to)
			err = errors.Join(err, unix.Sendto(fd, []byte(t.Sign), 0, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
		}
		return "sent", err
	}
}

// shouted6 sends to all nodes of each link.
func shouted6(t *try) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	err = fmt.Errorf("there is no interface")
	var sent []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 {
			continue
		}
		fd, serr := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if serr != nil {
			return "", serr
		}
		serr = unix.Sendto(fd, []byte(t.Sign), 0, &unix.SockaddrInet6{Port: 9999, ZoneId: uint32(i.Index), Addr: netip.MustParseAddr("ff02::1").As16()})
		_ = unix.Close(fd)
		if err = serr; err == nil {
			sent = append(sent, i.Name)
		}
	}
	if len(sent) > 0 {
		return "sent by " + strings.Join(sent, " and "), nil
	}
	return "", err
}

// socketed connects by a socket that f has prepared.
func socketed(family, kind, proto int, f func(fd int, t *try) error) attempt {
	return func(t *try) (string, error) {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return "", fmt.Errorf("socket: %w", err)
		}
		defer unix.Close(fd)
		tv := unix.NsecToTimeval(int64(patience))
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
		if err := f(fd, t); err != nil {
			return "", err
		}
		return "sent", nil
	}
}

func (t *try) at(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: t.Denied.As4()}
}

// connect waits no longer than others do, on kernels too that do not heed
// SO_SNDTIMEO here, as gVisor's.
func connect(fd int, to unix.Sockaddr) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	err := unix.Connect(fd, to)
	for end := time.Now().Add(patience); err == unix.EINPROGRESS || err == unix.EINTR; {
		left := time.Until(end)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		n, perr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1)
		switch {
		case perr != nil && perr != unix.EINTR:
			return perr
		case n == 1:
			code, gerr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err = gerr; err == nil && code != 0 {
				err = unix.Errno(code)
			}
			if err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	return unix.SetNonblock(fd, false)
}

// finish connects to the attempt's own address and says the sign.
func finish(fd int, t *try) error {
	if err := connect(fd, t.at(8443)); err != nil {
		return err
	}
	_, err := unix.Write(fd, []byte(t.Sign))
	return err
}

func option(level, name, value int) func(int, *try) error {
	return func(fd int, t *try) error {
		if err := unix.SetsockoptInt(fd, level, name, value); err != nil {
			return fmt.Errorf("option: %w", err)
		}
		return finish(fd, t)
	}
}

func fastOpen(fd int, t *try) error {
	err := unix.Sendto(fd, []byte(t.Sign), unix.MSG_FASTOPEN, t.at(8443))
	if err == unix.EINPROGRESS {
		time.Sleep(patience / 4) // the kernel goes on
		return nil
	}
	return err
}

// sourceRouted asks routers on the way to take another.
func sourceRouted(fd int, t *try) error {
	at, err := router()
	if err != nil {
		return err
	}
	via := at.As4()
	if err := unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(append([]byte{131, 7, 4}, via[0], via[1], via[2], via[3], 0))); err != nil {
		return fmt.Errorf("option: %w", err)
	}
	return finish(fd, t)
}

func bound(fd int, t *try) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, i.Name); err != nil {
				return fmt.Errorf("option: %w", err)
			}
			return finish(fd, t)
		}
	}
	return fmt.Errorf("there is no interface")
}

// echo is an ICMP echo request with the sign.
func echo(kind byte, sign string) []byte {
	p := append([]byte{kind, 0, 0, 0, 0, 1, 0, 1}, sign...)
	binary.BigEndian.PutUint16(p[2:], checksum(p))
	return p
}

func checksum(p []byte) uint16 {
	var sum uint32
	for i := 0; i < len(p); i += 2 {
		sum += uint32(p[i]) << 8
		if i+1 < len(p) {
			sum += uint32(p[i+1])
		}
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func ping(addr func(*try) netip.Addr) func(int, *try) error {
	return func(fd int, t *try) error {
		return unix.Sendto(fd, echo(8, t.Sign), 0, &unix.SockaddrInet4{Addr: addr(t).As4()})
	}
}

func ping6(fd int, t *try) error {
	return unix.Sendto(fd, echo(128, t.Sign), 0, &unix.SockaddrInet6{Addr: t.Denied6.As16()})
}

// raw sends the sign as the payload of a protocol.
func raw(fd int, t *try) error { return unix.Sendto(fd, []byte(t.Sign), 0, t.at(0)) }

// packet is an IPv4 packet with a UDP datagram, made by hand.
func packet(from, to netip.Addr, sign string) []byte {
	p := make([]byte, 28, 64)
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	a, b := from.As4(), to.As4()
	copy(p[12:], a[:])
	copy(p[16:], b[:])
	p = append(p, sign...)
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[10:], checksum(p[:20]))
	binary.BigEndian.PutUint16(p[20:], 9999)
	binary.BigEndian.PutUint16(p[22:], 9999)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(sign)))
	return p
}

func handmade(fd int, t *try) error {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_HDRINCL, 1)
	return unix.Sendto(fd, packet(netip.AddrFrom4([4]byte{}), t.Denied, t.Sign), 0, t.at(0))
}

// framed sends frames past the kernel's own IP, from an address that may not
// be the sandbox's.
func frame(whole bool) func(int, *try) error {
	return func(fd int, t *try) error {
		all, err := net.Interfaces()
		if err != nil {
			return err
		}
		from, sent := t.World.As4(), 0
		from[3] = 77
		for _, i := range all {
			if i.Flags&net.FlagLoopback != 0 {
				continue
			}
			p := packet(netip.AddrFrom4(from), t.Denied, t.Sign)
			to := &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: htons(unix.ETH_P_IP), Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
			if whole {
				p = append(append([]byte{255, 255, 255, 255, 255, 255, 2, 2, 2, 2, 2, 2}, 8, 0), p...)
			}
			if err := unix.Sendto(fd, p, 0, to); err != nil {
				return err
			}
			sent++
		}
		if sent == 0 {
			return fmt.Errorf("there is no interface")
		}
		return nil
	}
}

// addressed takes an address more, and speaks from it.
func addressed(t *try) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		from := t.World.As4()
		from[3] = 200
		if err := alias(i.Name, 1, netip.PrefixFrom(netip.AddrFrom4(from), 24)); err != nil {
			return "", err
		}
		d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: from[:]}}
		c, err := d.DialContext(t, "tcp", netip.AddrPortFrom(t.Denied, 8443).String())
		return say(c, err, t.Sign)
	}
	return "", fmt.Errorf("there is no interface")
}

// entered goes into the network of PID 1.
func entered(t *try) (string, error) {
	f, err := os.Open("/proc/1/ns/net")
	if err != nil {
		return "", err
	}
	defer f.Close()
	runtime.LockOSThread() // and the thread is not used again
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "sent", finish(fd, t)
}

// written writes a file of the system's, and goes where that leads.
func written(file string, line func(*try) string, then attempt) attempt {
	return func(t *try) (string, error) {
		err := os.WriteFile(file, []byte(line(t)), 0o644) //nolint:gosec // what a program would do
		said, terr := then(t)
		if err != nil {
			said = fmt.Sprintf("%v; %s", err, said)
		}
		return said, terr
	}
}

// asked resolves as every program does.
func asked(t *try) (string, error) {
	ctx, cancel := context.WithTimeout(t, 2*patience)
	defer cancel()
	r := net.Resolver{PreferGo: true}
	addrs, err := r.LookupHost(ctx, t.evil())
	return strings.Join(addrs, " "), err
}
