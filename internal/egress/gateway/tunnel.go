package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// opening is what a client says first, read until it has named its host.
type opening struct {
	kind  byte // its first
	to    authority
	tls   []byte // the ClientHello
	first *head  // or the first request
	rest  *bufio.Reader
	conn  net.Conn // that rest reads from
}

// readOpening reads the first words of a client, within FirstWords. r reads
// from client.
func readOpening(client net.Conn, r *bufio.Reader) (opening, error) {
	_ = client.SetReadDeadline(time.Now().Add(FirstWords))
	o, err := open(r)
	o.conn = client
	if err == nil {
		err = client.SetReadDeadline(time.Time{})
	}
	return o, err
}

func open(r *bufio.Reader) (opening, error) {
	o := opening{rest: r}
	first, err := r.Peek(1)
	if err != nil {
		return o, err
	}
	o.kind = first[0]
	switch {
	case o.kind == recordHandshake:
		hello, err := ReadHello(r)
		o.to.host, o.tls = hello.ServerName, hello.Raw
		return o, err
	case o.isHTTP():
		h, err := readHead(r)
		if err != nil {
			return o, whole(err)
		}
		o.first, o.to = h, h.to
		if h.method == methodTunnel {
			return o, refuse(egress.Upgrade, "CONNECT to what is no proxy")
		}
		return o, nil
	}
	return o, refuse(egress.Protocol, "")
}

func (o opening) isHTTP() bool { return o.kind >= 'A' && o.kind <= 'Z' }

// reason is why it is refused.
func (o opening) reason(err error) egress.Reason {
	switch {
	case o.kind == recordHandshake:
		return reasonOf(err, egress.BadTLS)
	case o.isHTTP():
		return reasonOf(err, egress.BadHTTP)
	}
	return reasonOf(err, egress.Protocol)
}

// refuse tells the client, in its own protocol. It is counted by then: a program
// that has its answer may end, and be asked after, at once.
func (o opening) refuse(client net.Conn, why egress.Reason) {
	switch {
	case o.kind == recordHandshake:
		tell(client, denied)
	case o.isHTTP():
		tell(client, answerOf("403 Forbidden", why))
	}
}

// relay passes on what both say, as the function of that name: of TLS
// everything, once the handshake names no other host any more; of HTTP request
// by request. port is what a request means that names none. What has to be
// whole before it goes on takes one of turns.
func (o *opening) relay(ctx context.Context, client, server net.Conn, port uint16, turns Turns) error {
	turn := func(pass func() error) error {
		return turns.take(ctx, func() {
			_ = client.Close()
			_ = server.Close()
		}, pass)
	}
	if o.first != nil {
		return relay(ctx, client, server, func() error { return o.requests(server, port, turn) })
	}
	h := &handshake{name: o.to.host}
	return relayAfter(ctx, client, server, func() error { return h.down(client, server) }, func() error {
		if _, err := server.Write(o.tls); err != nil {
			return err
		}
		o.tls = nil // it may be 64 KiB, and the connection may last
		if err := h.up(server, o.rest, turn); err != nil {
			return err
		}
		if err := drain(server, o.rest); err != nil {
			return err
		}
		o.rest = nil
		return pour(server, o.conn)
	})
}

// requests passes on requests, each checked before its first byte leaves, and
// each to the host of the first. Between them a client may be silent for as
// long as it likes, and nothing is kept but what r holds; turn calls what passes
// on a further head.
func (o *opening) requests(server net.Conn, port uint16, turn func(func() error) error) error {
	first, body := o.first.to, o.first.body
	err := o.first.send(server, body.ends())
	o.first = nil // a head may be 32 KiB, and the connection may last
	for err == nil {
		if err := body.send(server, o.rest, o.conn); err != nil {
			return err
		}
		if body.ends() { // what comes after it goes nowhere
			_, err := io.Copy(io.Discard, o.rest)
			return err
		}
		if _, err := o.rest.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		err = turn(func() error {
			next, err := readHead(o.rest)
			switch {
			case err != nil:
				return err
			case next.method == methodTunnel:
				return refuse(egress.Upgrade, "CONNECT to what is no proxy")
			case !next.to.same(first, port):
				return refuse(egress.OtherHost, "a later request on the connection")
			}
			body = next.body
			return next.send(server, body.ends())
		})
	}
	return err
}
