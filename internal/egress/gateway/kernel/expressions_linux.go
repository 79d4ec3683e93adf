package kernel

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// Where things are in a packet.
const (
	fromAt, toAt = 12, 16 // in the IPv4 header
	portAt       = 2      // of the destination, in the headers of TCP and UDP
)

const (
	reg = 1 // every test uses one register, one after the other

	begins      = expr.CtStateBitNEW
	established = expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
	turnedAside = 1 << 5 // IPS_DST_NAT
)

// program is one rule in the making: tests, all of which must hold, then the
// verdict.
type program []expr.Any

func (p *program) add(e ...expr.Any) { *p = append(*p, e...) }

func (p *program) meta(key expr.MetaKey, want []byte) {
	p.add(&expr.Meta{Key: key, Register: reg}, &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: want})
}

// ipv4 makes sure that what is read of the network header is IPv4's.
func (p *program) ipv4() { p.meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV4}) }

func (p *program) address(at uint32) {
	p.ipv4()
	p.add(&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: 4})
}

func (p *program) within(at uint32, op expr.CmpOp, prefix netip.Prefix) {
	p.address(at)
	mask := ^uint32(0) << (32 - prefix.Bits())
	if prefix.Bits() == 0 {
		mask = 0
	}
	p.add(&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4, Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: reg, Data: prefix.Masked().Addr().AsSlice()})
}

// bits holds when one of them is set.
func (p *program) bits(key expr.CtKey, any uint32) {
	p.add(&expr.Ct{Key: key, Register: reg},
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(any), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: make([]byte, 4)})
}

// name is an interface's name as the kernel compares it.
func name(s string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, s)
	return b
}

var protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// expressions turns a rule into what nftables knows. Sets of ports are made on
// the way.
func expressions(conn *nftables.Conn, table *nftables.Table, sets map[string]*nftables.Set, r gateway.PacketRule) ([]expr.Any, error) {
	var p program
	if r.In != "" {
		p.meta(expr.MetaKeyIIFNAME, name(r.In))
	}
	if r.Out != "" {
		p.meta(expr.MetaKeyOIFNAME, name(r.Out))
	}
	if r.UID != nil {
		p.meta(expr.MetaKeySKUID, binaryutil.NativeEndian.PutUint32(*r.UID))
	}
	if r.IPv6 {
		p.meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV6})
	}
	if r.From.IsValid() {
		p.within(fromAt, expr.CmpOpEq, r.From)
	}
	if r.NotFrom.IsValid() {
		p.within(fromAt, expr.CmpOpNeq, r.NotFrom)
	}
	if r.To.IsValid() {
		p.within(toAt, expr.CmpOpEq, r.To)
	}
	if r.ToSet != "" {
		set, ok := sets[r.ToSet]
		if !ok {
			return nil, fmt.Errorf("there is no set %q", r.ToSet)
		}
		p.address(toAt)
		p.add(&expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
	}
	if r.Proto != "" {
		proto, ok := protocols[r.Proto]
		if !ok {
			return nil, fmt.Errorf("protocol %q", r.Proto)
		}
		p.meta(expr.MetaKeyL4PROTO, []byte{proto})
	}
	if len(r.Ports) > 0 {
		if err := p.ports(conn, table, r.Ports); err != nil {
			return nil, err
		}
	}
	if r.Established {
		p.bits(expr.CtKeySTATE, established)
	}
	if r.New {
		p.bits(expr.CtKeySTATE, begins)
	}
	if r.Redirected {
		p.bits(expr.CtKeySTATUS, turnedAside)
	}
	if r.Few { // in this order: what is too fast is not counted
		p.add(&expr.Limit{Type: expr.LimitTypePkts, Rate: gateway.BeginRate, Unit: expr.LimitTimeSecond, Burst: gateway.BeginBurst},
			&expr.Connlimit{Count: gateway.BeginAtATime})
	}
	return p, p.verdict(r)
}

func (p *program) ports(conn *nftables.Conn, table *nftables.Table, ports []uint16) error {
	p.add(&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: portAt, Len: 2})
	if len(ports) == 1 {
		p.add(&expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: binaryutil.BigEndian.PutUint16(ports[0])})
		return nil
	}
	set := &nftables.Set{Table: table, Anonymous: true, Constant: true, KeyType: nftables.TypeInetService}
	var all []nftables.SetElement
	for _, port := range ports {
		all = append(all, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(port)})
	}
	if err := conn.AddSet(set, all); err != nil {
		return err
	}
	p.add(&expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
	return nil
}

func (p *program) verdict(r gateway.PacketRule) error {
	switch r.Verdict {
	case gateway.Accept:
		p.add(&expr.Verdict{Kind: expr.VerdictAccept})
	case gateway.Drop:
		p.add(&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	case gateway.Note:
		p.add(&expr.Limit{Type: expr.LimitTypePkts, Rate: gateway.NoteRate, Unit: expr.LimitTimeSecond, Burst: gateway.NoteBurst},
			// Each at once: gathered, they would come up to a second late.
			&expr.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN | 1<<unix.NFTA_LOG_QTHRESHOLD, Group: gateway.NoteGroup, Snaplen: gateway.NoteLength, QThreshold: 1})
	case gateway.Redirect:
		p.add(&expr.Immediate{Register: reg, Data: binaryutil.BigEndian.PutUint16(r.ToPort)}, &expr.Redir{RegisterProtoMin: reg})
	case gateway.Masquerade:
		p.add(&expr.Masq{})
	default:
		return fmt.Errorf("verdict %q", r.Verdict)
	}
	return nil
}
