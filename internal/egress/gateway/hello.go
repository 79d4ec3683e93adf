package gateway

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// MaxHello is how many bytes a ClientHello may take, with the headers of
	// its records.
	MaxHello = 64 << 10
	// FirstWords is how long a client may take to say what it wants.
	FirstWords = 5 * time.Second
)

// Hello is the beginning of a TLS connection.
type Hello struct {
	ServerName string // canonical
	Raw        []byte // every byte that was read, to be sent on
}

const (
	recordHandshake  = 22
	messageHello     = 1
	maxRecord        = 1 << 14
	extServerName    = 0
	extOuter         = 0xfd00 // the inner hello's reference to the outer
	nameTypeHost     = 0
	maxSessionID     = 32
	recordHeaderLen  = 5
	messageHeaderLen = 4
)

// hidden are the extensions that hide the name of the server, by their drafts
// and by what became of them: ESNI, then ECH.
var hidden = []uint16{0xffce, 0xff02, 0xff03, 0xfe02, 0xfe03, 0xfe04, 0xfe05, 0xfe06, 0xfe07, 0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xfe0d, extOuter}

// ReadHello reads a ClientHello, over as many records as it takes, and no byte
// more. A Refusal says what is wrong with it: not TLS 1.0 to 1.3 (bad-tls), no
// or several names (no-server-name, bad-tls), a name that is hidden, even if
// another one is shown (encrypted-hello). r has a deadline of its own, if any.
func ReadHello(r io.Reader) (Hello, error) {
	var raw, message []byte
	for {
		var header [recordHeaderLen]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return Hello{}, whole(err)
		}
		n := int(binary.BigEndian.Uint16(header[3:]))
		switch {
		case header[0] != recordHandshake:
			return Hello{}, refuse(egress.BadTLS, "a record of type %d where the ClientHello is", header[0])
		case header[1] != 3 || header[2] > 4:
			return Hello{}, refuse(egress.BadTLS, "the version of a record is %d.%d", header[1], header[2])
		case n == 0 || n > maxRecord:
			return Hello{}, refuse(egress.BadTLS, "a record of %d bytes", n)
		case len(raw)+len(header)+n > MaxHello:
			return Hello{}, refuse(egress.BadTLS, "more than %d bytes", MaxHello)
		}
		start := len(raw) + len(header)
		raw = append(append(raw, header[:]...), make([]byte, n)...)
		if _, err := io.ReadFull(r, raw[start:]); err != nil {
			return Hello{}, whole(err)
		}
		message = append(message, raw[start:]...)
		if message[0] != messageHello {
			return Hello{}, refuse(egress.BadTLS, "a message of type %d where the ClientHello is", message[0])
		}
		if len(message) < messageHeaderLen {
			continue
		}
		length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
		switch rest := len(message) - messageHeaderLen - length; {
		case messageHeaderLen+length > MaxHello:
			return Hello{}, refuse(egress.BadTLS, "more than %d bytes", MaxHello)
		case rest < 0:
			continue
		case rest > 0:
			return Hello{}, refuse(egress.BadTLS, "something follows the ClientHello in its record")
		}
		name, err := serverName(message[messageHeaderLen:])
		return Hello{name, raw}, err
	}
}

// serverName reads the body of a ClientHello.
func serverName(body []byte) (string, error) {
	c := cursor{rest: body}
	version := c.uint(2)
	c.take(32) // random
	session := c.vector(1)
	suites := c.vector(2)
	compressions := c.vector(1)
	if c.short || version < 0x0301 || version > 0x0303 || len(session) > maxSessionID || len(suites) == 0 || len(suites)%2 != 0 || len(compressions) == 0 {
		return "", refuse(egress.BadTLS, "its lengths or its version are wrong")
	}
	if len(c.rest) == 0 {
		return "", refuse(egress.NoServerName, "there are no extensions")
	}
	exts := cursor{rest: c.vector(2)}
	if c.short || len(c.rest) > 0 {
		return "", refuse(egress.BadTLS, "the length of its extensions is wrong")
	}
	seen := map[uint16]bool{}
	name, covered := "", false
	for len(exts.rest) > 0 {
		kind := uint16(exts.uint(2))
		data := exts.vector(2)
		if exts.short {
			return "", refuse(egress.BadTLS, "the length of an extension is wrong")
		}
		if seen[kind] {
			return "", refuse(egress.BadTLS, "extension %d comes twice", kind)
		}
		seen[kind] = true
		for _, h := range hidden {
			covered = covered || kind == h
		}
		if kind == extServerName {
			var err error
			if name, err = oneName(data); err != nil {
				return "", err
			}
		}
	}
	switch {
	case covered:
		return "", refuse(egress.Encrypted, "")
	case name == "":
		return "", refuse(egress.NoServerName, "")
	}
	return name, nil
}

// oneName reads the extension server_name, which has exactly one.
func oneName(data []byte) (string, error) {
	c := cursor{rest: data}
	list := cursor{rest: c.vector(2)}
	kind := list.uint(1)
	name := list.vector(2)
	if c.short || list.short || len(c.rest) > 0 || len(list.rest) > 0 || kind != nameTypeHost {
		return "", refuse(egress.BadTLS, "it names no server, or several")
	}
	host, err := driver.CanonicalHost(string(name))
	if err != nil {
		return "", refuse(egress.BadTLS, "what it names is no host")
	}
	return host, nil
}

// cursor reads the presentation language of TLS. Reading beyond the end gives
// nothing and is remembered.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.rest) {
		c.rest, c.short = nil, true
		return nil
	}
	out := c.rest[:n]
	c.rest = c.rest[n:]
	return out
}

func (c *cursor) uint(n int) int {
	v := 0
	for _, b := range c.take(n) {
		v = v<<8 | int(b)
	}
	return v
}

// vector is preceded by its length, itself of n bytes.
func (c *cursor) vector(n int) []byte { return c.take(c.uint(n)) }
