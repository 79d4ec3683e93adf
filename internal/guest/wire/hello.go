package wire

import (
	"encoding/binary"
	"io"
)

// greeting is the layout that never changes: eight bytes, the protocol in
// two, a length in four, and that many bytes which only the same protocol can
// read.
const greeting = "sandbxio"

const maxHello = 1 << 20

// HostHello is the first thing said on a connection.
type HostHello struct {
	Version   string // of the host's program
	Configure bool   // Env and Lifetime count; once per sandbox
	Env       [][2]string
	Lifetime  int64 // nanoseconds from now; 0 leaves the deadline
}

func (m *HostHello) Fields(c *Coder) {
	c.Str(&m.Version)
	c.Bool(&m.Configure)
	c.Pairs(&m.Env)
	Num(c, &m.Lifetime)
}

// GuestHello answers it. With a Failure the connection ends.
type GuestHello struct {
	Failure  Failure
	Version  string
	Boot     string // identifies this run of PID 1
	PID1UID  uint32
	Owned    bool
	Deadline int64 // unix nanoseconds, the guest's clock
}

func (m *GuestHello) Fields(c *Coder) {
	m.Failure.Fields(c)
	c.Str(&m.Version)
	c.Str(&m.Boot)
	Num(c, &m.PID1UID)
	c.Bool(&m.Owned)
	Num(c, &m.Deadline)
}

// WriteHello sends a greeting.
func WriteHello(w io.Writer, protocol uint16, m Message) error {
	body := Marshal(m)
	if len(body) > maxHello {
		return ErrTooLarge
	}
	b := append(make([]byte, 0, len(body)+14), greeting...)
	b = binary.BigEndian.AppendUint16(b, protocol)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	_, err := w.Write(append(b, body...))
	return err
}

// ReadHello receives a greeting. It decodes m only if the other side's
// protocol, which it returns, is this one; it reads not one byte beyond.
func ReadHello(r io.Reader, m Message) (protocol uint16, err error) {
	var head [len(greeting) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	if string(head[:len(greeting)]) != greeting {
		return 0, ErrMalformed
	}
	protocol = binary.BigEndian.Uint16(head[len(greeting):])
	body, err := readBlock(r, maxHello)
	if err != nil {
		return 0, err
	}
	if protocol != Protocol {
		return protocol, nil
	}
	return protocol, Unmarshal(body, m)
}
