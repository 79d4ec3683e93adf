package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Proxy serves programs that know it: CONNECT, and plain HTTP by absolute
// URLs. It looks hosts up itself, dials only addresses that it checked, and
// checks inside a tunnel to a host that TLS or HTTP names the same host.
type Proxy struct {
	gate
	names *names
}

// Lookup resolves a name. It is given with its final dot, so that no search
// domain is tried.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// ProxyOptions are what a Proxy is made of. All are required but Conns.
type ProxyOptions struct {
	Policy  *egress.Policy
	Denials egress.Denials
	Lookup  Lookup
	Dial    Dial
	Conns   int // at a time; 0 = 256
}

// NewProxy makes a Proxy.
func NewProxy(o ProxyOptions) *Proxy {
	if o.Conns == 0 {
		o.Conns = 256
	}
	return &Proxy{newGate(o.Policy, o.Denials, o.Dial, o.Conns), newNames(o.Lookup)}
}

// Serve serves one connection, and returns when it is over; it closes client.
// It is safe for concurrent use.
func (p *Proxy) Serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	if !p.enter() {
		p.deny(authority{}, netip.Addr{}, 0, egress.Capacity)
		tell(client, answerOf("503 Service Unavailable", egress.Capacity))
		return
	}
	defer p.leave()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	r := bufio.NewReader(client)
	var h *head
	var err error
	p.listen(ctx, func() {
		_ = client.SetReadDeadline(time.Now().Add(FirstWords))
		h, err = readHead(r)
	})
	if err == io.EOF || ctx.Err() != nil { //nolint:errorlint // only itself says that it came and went
		return
	}
	if err == nil && h.method != methodTunnel && !h.absolute {
		err = refuse(egress.BadHTTP, "a request to a proxy names its server in the request line")
	}
	if err != nil {
		why := reasonOf(err, egress.BadHTTP)
		p.deny(authority{}, netip.Addr{}, 0, why)
		tell(client, answerOf("400 Bad Request", why))
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	if h.to.port == 0 {
		h.to.port = 80
	}
	server, at, why := p.reach(ctx, h.to)
	if server == nil {
		if ctx.Err() == nil {
			p.deny(h.to, at, h.to.port, why)
			tell(client, answerOf(status(why), why))
		}
		return
	}
	defer server.Close()
	p.pass(ctx, client, server, r, h)
}

func status(why egress.Reason) string {
	if why == egress.Unresolved || why == egress.Unreachable {
		return "502 Bad Gateway"
	}
	if why == egress.Rate {
		return "503 Service Unavailable"
	}
	return "403 Forbidden"
}

// reach dials a target, or says why not, and of which address if of one.
func (p *Proxy) reach(ctx context.Context, to authority) (net.Conn, netip.Addr, egress.Reason) {
	d := p.policy.Decide(egress.Request{Host: to.host, Addr: to.addr, Port: to.port})
	if !d.Allowed {
		return nil, to.addr, d.Reason
	}
	addrs := []netip.Addr{to.addr}
	if to.host != "" {
		found, err := p.names.find(ctx, to.host)
		if err != nil {
			return nil, netip.Addr{}, reasonOf(err, egress.Unresolved)
		}
		if len(found) == 0 {
			return nil, netip.Addr{}, egress.Unresolved
		}
		for _, a := range found {
			// One that it must not lead to spoils all of them, as in Resolver.
			if d := p.policy.Decide(egress.Request{Host: to.host, Addr: a, Port: to.port}); !d.Allowed {
				return nil, a, d.Reason
			}
		}
		addrs = found
	}
	for _, a := range addrs {
		if server, err := p.connect(ctx, netip.AddrPortFrom(a, to.port)); err == nil {
			return server, a, ""
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, netip.Addr{}, egress.Unreachable
}

// pass relays a request that was allowed, and counts it when what comes after is
// refused.
func (p *Proxy) pass(ctx context.Context, client, server net.Conn, r *bufio.Reader, h *head) {
	over := func(why egress.Reason) {
		if why != "" && ctx.Err() == nil {
			p.deny(h.to, netip.Addr{}, h.to.port, why)
		}
	}
	if h.method != methodTunnel {
		over(Refused(relay(ctx, client, server, func() error {
			if err := errors.Join(h.send(server, true), h.body.send(server, r, client)); err != nil {
				return err
			}
			// It is the last of its connection; what a client sends after it
			// goes nowhere.
			_, err := io.Copy(io.Discard, r)
			return err
		})))
		return
	}
	if _, err := io.WriteString(client, h.version+" 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if h.to.host == "" { // a rule names the address: whatever it serves is allowed
		over(Refused(relay(ctx, client, server, func() error {
			_, err := io.Copy(server, r)
			return err
		})))
		return
	}
	var o opening
	var err error
	p.listen(ctx, func() { o, err = readOpening(client, r) })
	if ctx.Err() != nil {
		return
	}
	if err == nil && !o.to.same(h.to, h.to.port) {
		err = refuse(egress.OtherHost, "inside the tunnel")
	}
	if err != nil {
		if !silent(o, err) {
			why := o.reason(err)
			over(why)
			o.refuse(client, why)
		}
		return
	}
	over(Refused(o.relay(ctx, client, server, h.to.port, p.later)))
}
