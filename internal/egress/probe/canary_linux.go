package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canary answers, and tells what came.
type canary struct {
	w      World
	server *Server
	mu     sync.Mutex
	out    *json.Encoder
}

func (c *canary) say(t Told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(t)
}

// serve is a canary until its stdin ends.
func serve(config string) error {
	c := &canary{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(config), &c.w); err != nil {
		return err
	}
	var err error
	if c.server, err = NewServer(c.w.Env); err != nil {
		return err
	}
	for i, p := range c.w.Addrs {
		if err := alias(c.w.Iface, i, p); err != nil {
			return fmt.Errorf("address %s: %w", p, err)
		}
	}
	if c.w.Sniff {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
		if err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20)
		go c.sniff(fd)
	}
	for _, p := range c.w.TCP {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: int(p)})
		if err != nil {
			return err
		}
		go c.accept(l, p)
	}
	for _, p := range c.w.UDP {
		u, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(p)})
		if err != nil {
			return err
		}
		go c.receive(u, p)
	}
	var free uint16
	if c.w.Free {
		l, u, err := listenFree()
		if err != nil {
			return err
		}
		free = uint16(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert,gosec // it is TCP's
		go c.accept(l, free)
		go c.receive(u, free)
	}
	c.say(Told{Ready: true, Port: free})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if mark, ok := strings.CutPrefix(in.Text(), "mark "); ok {
			c.mark(mark)
		}
	}
	return in.Err()
}

// listenFree takes a port that is free for both TCP and UDP: another canary may
// be on this host.
func listenFree() (*net.TCPListener, *net.UDPConn, error) {
	var last error
	for range 32 {
		l, err := net.ListenTCP("tcp", nil)
		if err != nil {
			return nil, nil, err
		}
		u, err := net.ListenUDP("udp", &net.UDPAddr{Port: l.Addr().(*net.TCPAddr).Port}) //nolint:forcetypeassert // it is TCP's
		if err == nil {
			return l, u, nil
		}
		last = err
		_ = l.Close()
	}
	return nil, nil, last
}

// mark has its answer come after all that came before: by a packet of our own,
// which waits in the same queue.
func (c *canary) mark(mark string) {
	if !c.w.Sniff {
		c.say(Told{Mark: mark})
		return
	}
	u, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
	if err == nil {
		_, err = u.Write([]byte(markPrefix + mark))
		_ = u.Close()
	}
	if err != nil {
		c.say(Told{Error: err.Error()})
	}
}

const markPrefix = "sandboxio-mark:"

func (c *canary) accept(l net.Listener, port uint16) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !c.w.Sniff {
			c.told("tcp", conn.RemoteAddr(), conn.LocalAddr(), nil)
		}
		go c.server.Serve(conn, port)
	}
}

func (c *canary) told(proto string, from, to net.Addr, payload []byte) {
	e := &Event{At: now(), Proto: proto, Payload: payload}
	if a, err := netip.ParseAddrPort(from.String()); err == nil {
		e.From = a.Addr().Unmap()
	}
	if a, err := netip.ParseAddrPort(to.String()); err == nil {
		e.To, e.Port = a.Addr().Unmap(), a.Port()
	}
	c.say(Told{Event: e})
}

// receive answers UDP from the address that was asked.
func (c *canary) receive(u *net.UDPConn, port uint16) {
	if raw, err := u.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		})
	}
	buf, oob := make([]byte, 4096), make([]byte, 256)
	for {
		n, on, _, from, err := u.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if !c.w.Sniff {
			c.told("udp", net.UDPAddrFromAddrPort(from), u.LocalAddr(), append([]byte(nil), buf[:n]...))
		}
		reply := []byte("alive")
		if port == 53 {
			reply = c.server.Answer(buf[:n])
		}
		if reply != nil {
			_, _, _ = u.WriteMsgUDPAddrPort(reply, source(oob[:on]), from)
		}
	}
}

// source is the control message that sends a reply from where it was asked.
func source(oob []byte) []byte {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range all {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= 12 {
			info := unix.Inet4Pktinfo{}
			copy(info.Spec_dst[:], m.Data[8:12])
			return unix.PktInfo4(&info)
		}
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 16 {
			info := unix.Inet6Pktinfo{}
			copy(info.Addr[:], m.Data[:16])
			return unix.PktInfo6(&info)
		}
	}
	return nil
}

// alias gives an interface one more address.
func alias(iface string, n int, p netip.Prefix) error {
	if p.Addr().Is6() {
		return alias6(iface, p)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var mask [4]byte
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	for _, set := range []struct {
		call uint
		addr [4]byte
	}{{unix.SIOCSIFADDR, p.Addr().As4()}, {unix.SIOCSIFNETMASK, mask}} {
		r, err := unix.NewIfreq(fmt.Sprintf("%s:%d", iface, n))
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(set.addr[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.call, r); err != nil {
			return err
		}
	}
	return nil
}

func alias6(iface string, p netip.Prefix) error {
	at, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req := struct { // struct in6_ifreq
		addr  [16]byte
		bits  uint32
		index int32
	}{p.Addr().As16(), uint32(p.Bits()), int32(at.Index)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&req))); errno != 0 { //nolint:gosec // the only door to this call
		return errno
	}
	return nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
