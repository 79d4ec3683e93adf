package pid1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	// maxNames is how many questions, and maxTalks how many connections, are
	// under way at a time. More are dropped, and programs ask again.
	maxNames = 64
	maxTalks = 16

	nameWithin = 6 * time.Second // more than the gateway takes
	maxName    = 4096
)

// listensForNames is where the engine tells programs to ask. gVisor has a
// network of its own, in which nobody is there.
var listensForNames = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 11}), 53)

// relayNames brings questions to the resolver, and answers back, byte for byte:
// it knows nothing of names. It lasts as long as PID 1.
func relayNames(to netip.AddrPort) error {
	packets, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(listensForNames))
	if err != nil {
		return fmt.Errorf("the engine's resolver cannot be stood in for: %w", err)
	}
	streams, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(listensForNames))
	if err != nil {
		return errors.Join(fmt.Errorf("the engine's resolver cannot be stood in for: %w", err), packets.Close())
	}
	go relayPackets(packets, to)
	go relayStreams(streams, to)
	return nil
}

func relayPackets(from *net.UDPConn, to netip.AddrPort) {
	room := make(chan struct{}, maxNames)
	buf := make([]byte, maxName)
	for {
		n, peer, err := from.ReadFromUDPAddrPort(buf)
		if err != nil {
			time.Sleep(time.Millisecond) // of somebody who went away, or for want of memory
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		packet := append([]byte(nil), buf[:n]...)
		go func() {
			defer func() { <-room }()
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(nameWithin))
			if _, err := c.Write(packet); err != nil {
				return
			}
			answer := make([]byte, maxName)
			if n, err := c.Read(answer); err == nil {
				_, _ = from.WriteToUDPAddrPort(answer[:n], peer)
			}
		}()
	}
}

func relayStreams(l *net.TCPListener, to netip.AddrPort) {
	room := make(chan struct{}, maxTalks)
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		go func() {
			defer func() { <-room }()
			defer c.Close()
			up, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(to))
			if err != nil {
				return
			}
			defer up.Close()
			end := time.Now().Add(nameWithin)
			_ = c.SetDeadline(end)
			_ = up.SetDeadline(end)
			back := make(chan struct{})
			go func() {
				defer close(back)
				_, _ = io.Copy(c, up)
				_ = c.Close()
			}()
			_, _ = io.Copy(up, c)
			_ = up.CloseWrite()
			<-back
		}()
	}
}
