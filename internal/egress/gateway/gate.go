package gateway

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

const (
	// DialTimeout is how long an address may take to answer.
	DialTimeout = 10 * time.Second
	// Linger is for how long a client may go on after its server has ended.
	Linger = time.Minute
	// tellTimeout is how long a client may take to hear why it is refused.
	tellTimeout = time.Second
)

// Dial opens a TCP connection to an address that was checked.
type Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// gate is what both ways out have in common.
type gate struct {
	policy  *egress.Policy
	denials egress.Denials
	dial    Dial
	slots   chan struct{}
	reading chan struct{}
	later   Turns
}

// maxReading is how many connections may be saying their first words at a
// time, since those are kept until they are whole; the others wait.
const maxReading = 256

func newGate(p *egress.Policy, d egress.Denials, dial Dial, conns int) gate {
	return gate{p, d, dial, make(chan struct{}, conns), make(chan struct{}, min(conns, maxReading)), NewTurns()}
}

// listen calls read when there is room for it.
func (g *gate) listen(ctx context.Context, read func()) {
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
		read()
	case <-ctx.Done():
	}
}

func (g *gate) enter() bool {
	select {
	case g.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g *gate) leave() { <-g.slots }

func (g *gate) deny(to authority, addr netip.Addr, port uint16, why egress.Reason) {
	if !addr.IsValid() {
		addr = to.addr
	}
	now := time.Now()
	g.denials.Deny(egress.Denial{Host: to.host, Addr: addr, Port: port, Reason: why, First: now, Last: now})
}

// connect dials within DialTimeout.
func (g *gate) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	return g.dial(ctx, to)
}

// relay copies what the server says to the client, while up sends what the
// client says to the server, until both have ended. An error of up ends both
// at once, and so does the end of ctx.
func relay(ctx context.Context, client, server net.Conn, up func() error) error {
	return relayAfter(ctx, client, server, func() error { return nil }, up)
}

// relayAfter is relay where first passes on how the server begins. Its refusal
// ends both at once, too.
func relayAfter(ctx context.Context, client, server net.Conn, first, up func() error) error {
	shut := func() {
		_ = client.Close()
		_ = server.Close()
	}
	stop := context.AfterFunc(ctx, shut)
	defer stop()
	down := make(chan error, 1)
	go func() {
		err := first()
		if Refused(err) != "" {
			shut()
			down <- err
			return
		}
		if err == nil {
			_ = pour(client, server)
		}
		closeWrite(client)
		// What the client still says may come too late for the server, or not
		// be taken by it.
		end := time.Now().Add(Linger)
		_ = client.SetReadDeadline(end)
		_ = server.SetWriteDeadline(end)
		down <- nil
	}()
	err := up()
	if err != nil {
		shut()
	} else {
		closeWrite(server)
	}
	if refusal := <-down; refusal != nil {
		return refusal
	}
	return err
}

// closeWrite says that nothing more will be sent, if the connection can.
func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}

// tell writes the last words to a client.
func tell(client net.Conn, words []byte) {
	_ = client.SetWriteDeadline(time.Now().Add(tellTimeout))
	_, _ = client.Write(words)
	closeWrite(client)
}

// denied is the TLS alert access_denied.
var denied = []byte{21, 3, 3, 0, 2, 2, 49}

// answerOf is an HTTP response that says why.
func answerOf(status string, why egress.Reason) []byte {
	body := "sandboxio: " + why.Text() + "\n"
	return []byte("HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\nConnection: close\r\nX-Sandboxio-Reason: " + string(why) +
		"\r\n\r\n" + body)
}
