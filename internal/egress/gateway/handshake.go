package gateway

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// handshake is a TLS handshake whose ClientHello was read and is on its way. A
// server of TLS 1.3 may ask for another one (HelloRetryRequest), and is then
// free to believe the name in that: up to the server's answer for good, each
// ClientHello has to name the same host. Afterwards nothing is read any more.
type handshake struct {
	name    string
	settled atomic.Bool // the server has answered, and asks for no other ClientHello
	foreign atomic.Bool // it has answered, in another protocol: what it would take a name from is unknown
}

const (
	recordChange      = 20
	recordAlert       = 21
	recordData        = 23
	maxCiphertext     = maxRecord + 2048 // of TLS 1.2, the longest there is
	maxRetry          = 4 << 10          // a HelloRetryRequest
	messageRequest    = 0                // HelloRequest: it stands before what answers
	messageAnswer     = 2                // ServerHello, or HelloRetryRequest
	answerRandomBegin = messageHeaderLen + 2
	answerRandomEnd   = answerRandomBegin + 32
)

// retryRandom is what a ServerHello has for its random when it is a
// HelloRetryRequest (RFC 8446, 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// down passes on what the server says, until it has answered, for good or in
// another protocol. After an error it may still do so, to whom nothing is passed on any more.
func (h *handshake) down(client io.Writer, server io.Reader) error {
	var messages []byte // of which it is not known yet what they are
	piece := make([]byte, 512)
	for {
		header := piece[:recordHeaderLen]
		if n, err := io.ReadFull(server, header); err != nil {
			_, _ = client.Write(header[:n])
			return err
		}
		kind, left := header[0], int(binary.BigEndian.Uint16(header[3:]))
		if kind < recordChange || kind > recordHandshake {
			h.foreign.Store(true) // before the client knows
		}
		if _, err := client.Write(header); err != nil || h.foreign.Load() {
			return err
		}
		for left > 0 {
			n, err := server.Read(piece[:min(left, len(piece))])
			left -= n
			if kind == recordHandshake {
				var waits bool
				if messages, waits = unanswered(append(messages, piece[:n]...)); !waits {
					h.settled.Store(true) // before the client knows, so that what it says to it is not read
				}
			}
			if len(messages) > maxRetry {
				return refuse(egress.BadTLS, "the server does not come to its answer")
			}
			if _, werr := client.Write(piece[:n]); werr != nil {
				return werr
			}
			if err != nil || h.settled.Load() {
				return err
			}
		}
	}
}

// unanswered takes what is no answer from the beginning of a server's messages,
// and reports whether the answer is still to come.
func unanswered(messages []byte) (rest []byte, again bool) {
	for len(messages) >= messageHeaderLen {
		whole := messageHeaderLen + int(messages[1])<<16 + int(messages[2])<<8 + int(messages[3])
		switch {
		case messages[0] == messageRequest:
		case messages[0] != messageAnswer:
			return nil, false
		case len(messages) < min(whole, answerRandomEnd):
			return messages, true
		case whole < answerRandomEnd || !bytes.Equal(messages[answerRandomBegin:answerRandomEnd], retryRandom):
			return nil, false
		}
		if len(messages) < whole {
			return messages, true
		}
		messages = messages[whole:]
	}
	return messages, true
}

// up passes on what the client says, record by record, until the server has
// answered for good. r may have read further then. turn calls what reads and
// passes on a ClientHello. To a server of another protocol nothing goes any more.
func (h *handshake) up(server io.Writer, r *bufio.Reader, turn func(func() error) error) error {
	for {
		header, err := r.Peek(recordHeaderLen)
		switch {
		case h.foreign.Load() && len(header) > 0:
			return refuse(egress.Protocol, "the server has answered the ClientHello with something else than TLS")
		case h.settled.Load(): // what it said meanwhile is about what it was answered
			return nil
		case errors.Is(err, io.EOF) && len(header) == 0:
			return nil
		case err != nil:
			return whole(err)
		}
		size := int(binary.BigEndian.Uint16(header[3:]))
		switch header[0] {
		case recordHandshake:
			if err := turn(func() error { return h.again(server, r) }); err != nil {
				return err
			}
		case recordChange, recordAlert, recordData:
			if size > maxCiphertext {
				return refuse(egress.BadTLS, "a record of %d bytes", size)
			}
			if err := pass(server, r, nil, recordHeaderLen+int64(size)); err != nil {
				return err
			}
		default:
			return refuse(egress.BadTLS, "a record of type %d after the ClientHello", header[0])
		}
	}
}

// again passes on another ClientHello.
func (h *handshake) again(server io.Writer, r *bufio.Reader) error {
	hello, err := ReadHello(r)
	if err != nil {
		return err
	}
	if hello.ServerName != h.name {
		return refuse(egress.OtherHost, "a second ClientHello")
	}
	_, err = server.Write(hello.Raw)
	return err
}
