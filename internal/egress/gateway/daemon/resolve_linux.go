package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

const (
	// patience is how long the upstream server may take for one question, and
	// tries how often it is asked over UDP.
	patience = 2 * time.Second
	tries    = 2

	// asking bounds how many questions are under way at a time; more are not
	// answered, and programs ask again. talking bounds the connections; more
	// wait.
	asking  = 128
	talking = 32

	// idle is how long a connection may be silent.
	idle = 10 * time.Second

	maxPacket = 4096
)

// answer takes questions over UDP.
func (p *post) answer(ctx context.Context) {
	room := make(chan struct{}, asking)
	defer func() {
		for range asking { // until the last has ended
			room <- struct{}{}
		}
	}()
	buf := make([]byte, maxPacket)
	for {
		n, from, err := p.queries.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil {
			continue // an ICMP error of somebody who went away
		}
		reply, query := p.resolver.Ask(buf[:n], time.Now())
		if query == nil {
			p.reply(reply, from)
			continue
		}
		select {
		case room <- struct{}{}:
			go func() {
				defer func() { <-room }()
				p.reply(p.ask(ctx, query), from)
			}()
		default:
			p.reply(query.Fail(), from)
		}
	}
}

func (p *post) reply(packet []byte, to netip.AddrPort) {
	if packet != nil {
		_, _ = p.queries.WriteToUDPAddrPort(packet, to)
	}
}

// converse takes questions over TCP.
func (p *post) converse(ctx context.Context) {
	accept(ctx, p.longer, talking, func(c *net.TCPConn) {
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		for {
			_ = c.SetDeadline(time.Now().Add(idle))
			packet, err := readFrame(c)
			if err != nil {
				return
			}
			reply, query := p.resolver.Ask(packet, time.Now())
			if query != nil {
				reply = p.ask(ctx, query)
			}
			if reply == nil || writeFrame(c, reply) != nil {
				return
			}
		}
	})
}

// ask asks the upstream server, and gives what the program is told.
func (p *post) ask(ctx context.Context, q *gateway.Query) []byte {
	for range tries {
		reply, err := p.askPacket(ctx, q)
		if errors.Is(err, gateway.ErrTruncated) {
			reply, err = p.askStream(ctx, q)
		}
		if err == nil {
			return reply
		}
		if ctx.Err() != nil {
			return q.Fail() // the gateway ends, which says nothing of the name
		}
	}
	return p.resolver.Unanswered(q, time.Now())
}

func (p *post) askPacket(ctx context.Context, q *gateway.Query) ([]byte, error) {
	c, err := p.upstream(ctx, "udp4")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(q.Packet); err != nil {
		return nil, err
	}
	buf := make([]byte, maxPacket)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		reply, err := p.resolver.Answer(q, buf[:n], time.Now())
		if !errors.Is(err, gateway.ErrNotTheAnswer) {
			return reply, err
		}
	}
}

func (p *post) askStream(ctx context.Context, q *gateway.Query) ([]byte, error) {
	c, err := p.upstream(ctx, "tcp4")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := writeFrame(c, q.Packet); err != nil {
		return nil, err
	}
	packet, err := readFrame(c)
	if err != nil {
		return nil, err
	}
	return p.resolver.Answer(q, packet, time.Now())
}

// upstream connects a socket of its own for each question: its port is one
// more thing that a forged answer has to guess.
func (p *post) upstream(ctx context.Context, network string) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, network, p.cfg.Upstream.String())
	if err == nil {
		err = c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, packet)
	return packet, err
}

func writeFrame(w io.Writer, packet []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...))
	return err
}
