package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// Of nfnetlink_log, which package unix does not have.
const (
	logConfig  = unix.NFNL_SUBSYS_ULOG<<8 | 1 // NFULNL_MSG_CONFIG
	logPacket  = unix.NFNL_SUBSYS_ULOG << 8   // NFULNL_MSG_PACKET, which is 0
	logCommand = 1                            // NFULA_CFG_CMD
	logMode    = 2                            // NFULA_CFG_MODE
	logPayload = 9                            // NFULA_PAYLOAD

	bindGroup  = 1 // NFULNL_CFG_CMD_BIND
	copyPacket = 2 // NFULNL_COPY_PACKET

	genericHeader = 4 // struct nfgenmsg
)

// Notes are the packets that the packet filter tells of. They are listened to
// with privileges, and read without.
type Notes struct {
	conn *netlink.Conn
	raw  syscall.RawConn

	mu  sync.Mutex // held from when a note is read until it has been taken
	buf []byte
}

const (
	noteSpace = 32 << 10 // more than the kernel puts into one message
	// noteTurn is how many messages are read while others wait, and noteRoom
	// more than a socket has room for, by default, before the rest is lost.
	noteTurn, noteRoom = 64, 2048
)

// ListenNotes binds to the group of gateway.Note.
func ListenNotes() (*Notes, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, lacking(err)
	}
	header := []byte{unix.AF_UNSPEC, 0, 0, 0}
	binary.BigEndian.PutUint16(header[2:], gateway.NoteGroup)
	mode := append(binary.BigEndian.AppendUint32(nil, gateway.NoteLength), copyPacket, 0)
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: logCommand, Data: []byte{bindGroup}}, {Type: logMode, Data: mode}})
	if err == nil {
		_, err = conn.Execute(netlink.Message{Header: netlink.Header{Type: logConfig, Flags: netlink.Request | netlink.Acknowledge}, Data: append(header, attrs...)})
	}
	if err == nil {
		err = conn.SetOption(netlink.NoENOBUFS, true) // what is told too fast is lost
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("what is dropped cannot be listened to: %w", lacking(err)), conn.Close())
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Notes{conn: conn, raw: raw, buf: make([]byte, noteSpace)}, nil
}

// Read gives each packet's beginning to take, until Close. One at a time: take
// may keep nothing of it.
func (n *Notes) Read(take func([]byte)) {
	_ = n.raw.Read(func(fd uintptr) bool {
		for n.some(int(fd), noteTurn, take) == noteTurn {
		}
		return false // until there is more
	})
}

// CatchUp returns when all that was told of before has been taken, by Read or
// by itself.
func (n *Notes) CatchUp(take func([]byte)) {
	_ = n.raw.Control(func(fd uintptr) { n.some(int(fd), noteRoom, take) })
}

// some takes what is there, at most so many messages, and gives how many.
func (n *Notes) some(fd, most int, take func([]byte)) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for count < most {
		size, _, err := unix.Recvfrom(fd, n.buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return count
		}
		count++
		told(n.buf[:size], take)
	}
	return count
}

// told gives the packets of one message.
func told(message []byte, take func([]byte)) {
	msgs, err := syscall.ParseNetlinkMessage(message)
	if err != nil {
		return
	}
	for _, m := range msgs {
		if m.Header.Type != logPacket || len(m.Data) < genericHeader {
			continue
		}
		d, err := netlink.NewAttributeDecoder(m.Data[genericHeader:])
		if err != nil {
			continue
		}
		for d.Next() {
			if d.Type() == logPayload {
				take(d.Bytes())
			}
		}
	}
}

// Close ends Read.
func (n *Notes) Close() error { return n.conn.Close() }
