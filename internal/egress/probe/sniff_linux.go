package probe

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func now() int64 { return time.Now().UnixNano() }

// sniff tells every packet that comes, in the order in which they came.
func (c *canary) sniff(fd int) {
	buf := make([]byte, 65536)
	for {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR || err == unix.ENETDOWN {
			continue
		}
		if err != nil {
			c.say(Told{Error: "packet socket: " + err.Error()})
			return
		}
		at, ok := from.(*unix.SockaddrLinklayer)
		if !ok || at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		e, ok := parsePacket(buf[:n])
		if !ok {
			continue
		}
		if e.To.IsLoopback() {
			if mark, ok := strings.CutPrefix(string(e.Payload), markPrefix); ok {
				c.say(Told{Mark: mark})
			}
			continue
		}
		if at.Hatype == unix.ARPHRD_LOOPBACK { // its own kernel's, to itself: that it could not answer, say
			continue
		}
		e.At = now()
		c.say(Told{Event: &e})
	}
}

// maxPayload of a packet is told.
const maxPayload = 2048

// parsePacket reads an IP packet. Of TCP it takes what opens a connection and
// what carries data.
func parsePacket(p []byte) (Event, bool) {
	var e Event
	var proto byte
	if len(p) < 20 {
		return e, false
	}
	switch p[0] >> 4 {
	case 4:
		size := int(p[0]&15) * 4
		total := int(binary.BigEndian.Uint16(p[2:]))
		if size < 20 || total < size || total > len(p) {
			return e, false
		}
		e.From, e.To = netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
		proto = p[9]
		p = p[size:total]
	case 6:
		if len(p) < 40 {
			return e, false
		}
		e.From, e.To = netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
		proto = p[6]
		p = p[40:]
	default:
		return e, false
	}
	switch proto {
	case unix.IPPROTO_TCP:
		if len(p) < 20 {
			return e, false
		}
		e.Proto, e.Port = "tcp", binary.BigEndian.Uint16(p[2:])
		size := int(p[12]>>4) * 4
		opens := p[13]&2 != 0 && p[13]&16 == 0
		if size < 20 || size > len(p) || !opens && len(p) == size {
			return e, false
		}
		p = p[size:]
	case unix.IPPROTO_UDP:
		if len(p) < 8 {
			return e, false
		}
		e.Proto, e.Port = "udp", binary.BigEndian.Uint16(p[2:])
		p = p[8:]
	case unix.IPPROTO_ICMP:
		e.Proto = "icmp"
	case unix.IPPROTO_ICMPV6:
		e.Proto = "icmp6"
	default:
		e.Proto = "ip-" + strconv.Itoa(int(proto))
	}
	e.Payload = append([]byte(nil), p[:min(len(p), maxPayload)]...)
	return e, true
}
