package gateway

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Dropped gives the denial that a packet stands for which the packet filter
// dropped, given its beginning as a Note tells it; false for what is no IPv4.
// Dropped though a rule allows it is what was one too many.
func Dropped(p *egress.Policy, packet []byte, now time.Time) (egress.Denial, bool) {
	const shortest, tcp, udp = 20, 6, 17
	if len(packet) < shortest || packet[0]>>4 != 4 {
		return egress.Denial{}, false
	}
	header := int(packet[0]&0xf) * 4
	first := binary.BigEndian.Uint16(packet[6:])&0x1fff == 0 // of its fragments: only it has ports
	d := egress.Denial{Addr: netip.AddrFrom4([4]byte(packet[16:20])), Reason: egress.NotTCP, First: now, Last: now}
	if proto := packet[9]; (proto == tcp || proto == udp) && first && header >= shortest && len(packet) >= header+4 {
		d.Port = binary.BigEndian.Uint16(packet[header+2:])
		if proto == tcp {
			if d.Reason = p.Decide(egress.Request{Addr: d.Addr, Port: d.Port}).Reason; d.Reason == egress.Allowed {
				d.Reason = egress.Capacity
			}
		}
	}
	return d, true
}
