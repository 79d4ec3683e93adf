package gateway

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
)

// Passage is a connection that was allowed, together with the one to its
// server. All that a Carrier needs of what was decided is in it: the client's
// first words, read again, name the only host that it may speak to.
type Passage struct {
	Client, Server net.Conn
	Said           []byte // all that was read from the client, at most MaxSaid bytes
	Port           uint16 // of the server
}

// readAhead is how much is read of a client beyond its first words: what a
// bufio.Reader holds.
const readAhead = 4 << 10

// MaxSaid bounds what is read of a client before it is allowed.
const MaxSaid = MaxHello + readAhead

// Carrier carries a passage to its end. It takes both connections over and
// closes them, here at the latest when it returns; the passage may last longer,
// in another process. It calls ended once, with a *Refusal if that was the end.
type Carrier func(ctx context.Context, p Passage, ended func(error))

// Carry passes on what both sides say, until both have ended or ctx has, and
// closes both. Of HTTP each request is checked before its first byte leaves, and
// of TLS each ClientHello: another host than the first is a *Refusal. All that
// one process carries for a sandbox has the same turns.
func (p Passage) Carry(ctx context.Context, turns Turns) error {
	client, server, port := p.Client, p.Server, p.Port
	defer client.Close()
	defer server.Close()
	o, err := p.reopen()
	if err != nil {
		return err
	}
	return o.relay(ctx, client, server, port, turns)
}

// reopen reads the first words again, as they were read when they were allowed.
func (p Passage) reopen() (opening, error) {
	said := bytes.NewReader(p.Said)
	r := bufio.NewReaderSize(said, readAhead)
	o, err := open(r)
	if err != nil {
		return o, err
	}
	ahead := r.Buffered() + said.Len()
	// What was said is not kept for as long as the connection lives.
	o.conn, o.rest = p.Client, bufio.NewReaderSize(&sequel{bytes.Clone(p.Said[len(p.Said)-ahead:]), p.Client}, readAhead)
	_, err = o.rest.Peek(ahead)
	return o, err
}

// sequel gives what was read ahead, and then what comes.
type sequel struct {
	ahead []byte
	then  io.Reader
}

func (s *sequel) Read(b []byte) (int, error) {
	if len(s.ahead) == 0 {
		s.ahead = nil
		return s.then.Read(b)
	}
	n := copy(b, s.ahead)
	s.ahead = s.ahead[n:]
	return n, nil
}

// tape keeps what is read of a client until it is allowed.
type tape struct {
	client io.Reader
	said   []byte
}

func (t *tape) Read(b []byte) (int, error) {
	n, err := t.client.Read(b)
	t.said = append(t.said, b[:n]...)
	return n, err
}
