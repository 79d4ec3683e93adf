package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// A gateway sends orders: a header with the two sockets, then what the client
// has said. A relay sends reports.
const (
	headerLen   = 12 // id, how much was said, port, 0
	reportLen   = 5  // id, length of the reason
	maxReason   = 64
	socketsEach = 2
)

// ready is the id of the first report, which is about no connection.
const ready = 0

var (
	// errLost says that the sockets of an order did not arrive.
	errLost = errors.New("its descriptors were lost")
	// errNonsense says that the other side is not what it should be.
	errNonsense = errors.New("the other side says what makes no sense")
)

// errUntaken is about a relay, whatever the passage.
var errUntaken = errors.New("it takes no orders")

// sendOrder hands a passage over; both connections are still open here
// afterwards. sent reports whether any of it has left.
func sendOrder(to *net.UnixConn, id uint32, p gateway.Passage) (sent bool, err error) {
	client, err := rawOf(p.Client)
	if err != nil {
		return false, err
	}
	server, err := rawOf(p.Server)
	if err != nil {
		return false, err
	}
	var header [headerLen]byte
	binary.BigEndian.PutUint32(header[0:], id)
	binary.BigEndian.PutUint32(header[4:], uint32(len(p.Said)))
	binary.BigEndian.PutUint16(header[8:], p.Port)
	var n int
	cerr := client.Control(func(c uintptr) {
		serr := server.Control(func(s uintptr) {
			if n, _, err = to.WriteMsgUnix(header[:], unix.UnixRights(int(c), int(s)), nil); err != nil {
				err = errors.Join(errUntaken, err)
			}
		})
		err = errors.Join(err, serr)
	})
	if err = errors.Join(err, cerr); err == nil {
		_, err = to.Write(append(header[n:], p.Said...))
	}
	return n > 0, err
}

// receiveOrder takes a passage over. errLost is about that passage alone.
func receiveOrder(from *net.UnixConn) (id uint32, p gateway.Passage, err error) {
	var header [headerLen]byte
	rights := make([]byte, unix.CmsgSpace(socketsEach*4))
	n, nr, flags, _, err := from.ReadMsgUnix(header[:], rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, p, err
	}
	conns, lost := takeOver(rights[:nr])
	if flags&unix.MSG_CTRUNC != 0 {
		lost = errLost
	}
	defer func() {
		if err != nil {
			for _, c := range conns {
				_ = c.Close()
			}
		}
	}()
	if _, err := io.ReadFull(from, header[n:]); err != nil {
		return 0, p, err
	}
	size := binary.BigEndian.Uint32(header[4:])
	if size > gateway.MaxSaid {
		return 0, p, errNonsense
	}
	id, p.Port, p.Said = binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint16(header[8:]), make([]byte, size)
	if _, err := io.ReadFull(from, p.Said); err != nil {
		return 0, p, err
	}
	if lost != nil {
		return id, p, lost
	}
	p.Client, p.Server = conns[0], conns[1]
	return id, p, nil
}

// takeOver makes connections of what came beside an order.
func takeOver(rights []byte) ([]net.Conn, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, errLost
	}
	var conns []net.Conn
	bad := false
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		bad = bad || err != nil
		for _, fd := range fds {
			c, err := connOf(fd)
			if err != nil {
				bad = true
				continue
			}
			conns = append(conns, c)
		}
	}
	if bad || len(conns) != socketsEach {
		return conns, errLost
	}
	return conns, nil
}

// connOf makes a connection of a descriptor, which is closed.
func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return net.FileConn(f)
}

// report is what a relay tells of a connection that has ended.
func report(id uint32, why egress.Reason) []byte {
	b := binary.BigEndian.AppendUint32(nil, id)
	return append(append(b, byte(len(why))), why...)
}

// readReport reads one; a reason is one that there is, or "".
func readReport(r io.Reader) (id uint32, why egress.Reason, err error) {
	var header [reportLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, "", err
	}
	if header[4] > maxReason {
		return 0, "", errNonsense
	}
	reason := make([]byte, header[4])
	if _, err := io.ReadFull(r, reason); err != nil {
		return 0, "", err
	}
	why = egress.Reason(reason)
	if why != "" && !why.Known() {
		return 0, "", errNonsense
	}
	return binary.BigEndian.Uint32(header[:]), why, nil
}

func rawOf(c net.Conn) (raw interface {
	Control(f func(fd uintptr)) error
}, err error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("a connection of type %T cannot be handed over", c)
	}
	return t.SyscallConn()
}
