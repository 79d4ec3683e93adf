package gateway

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Router takes the connections of a program that knows nothing of it, turned
// aside on their way to ports of rules for hosts. A connection goes on to the
// address that it was meant for, if it names, by TLS or HTTP/1, a host that a
// rule allows on the port, and if that address was resolved for that host.
type Router struct {
	gate
	pins  *Pins
	carry Carrier
}

// RouterOptions are what a Router is made of. All are required but Carry and
// Conns.
type RouterOptions struct {
	Policy  *egress.Policy
	Pins    *Pins
	Denials egress.Denials
	Dial    Dial
	Carry   Carrier // of what was allowed; nil = this process
	Conns   int     // at a time; 0 = 10,000
}

// NewRouter makes a Router.
func NewRouter(o RouterOptions) *Router {
	if o.Conns == 0 {
		o.Conns = 10_000
	}
	r := &Router{newGate(o.Policy, o.Denials, o.Dial, o.Conns), o.Pins, o.Carry}
	if r.carry == nil {
		r.carry = func(ctx context.Context, p Passage, ended func(error)) { ended(p.Carry(ctx, r.later)) }
	}
	return r
}

// Serve relays one connection that was meant for to, and closes client. It
// returns when the connection is over, or is carried elsewhere. It is safe for
// concurrent use.
func (r *Router) Serve(ctx context.Context, client net.Conn, to netip.AddrPort) {
	defer client.Close()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if !r.enter() {
		r.deny(authority{}, to.Addr(), to.Port(), egress.Capacity)
		return
	}
	said, named, ok := r.admit(ctx, client, to)
	if !ok {
		r.leave()
		return
	}
	server, err := r.connect(ctx, to)
	if err != nil {
		if ctx.Err() == nil {
			r.deny(named, to.Addr(), to.Port(), egress.Unreachable)
		}
		r.leave()
		return
	}
	r.carry(ctx, Passage{Client: client, Server: server, Said: said, Port: to.Port()}, func(err error) {
		defer r.leave()
		if f, ok := errors.AsType[*Refusal](err); ok {
			r.deny(named, to.Addr(), to.Port(), f.Reason)
		}
	})
}

// admit reads the first words of a client and tells it if they are refused. It
// gives all that was read, and what it named.
func (r *Router) admit(ctx context.Context, client net.Conn, to netip.AddrPort) ([]byte, authority, bool) {
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	said := tape{client: client}
	var o opening
	var err error
	r.listen(ctx, func() { o, err = readOpening(client, bufio.NewReaderSize(&said, readAhead)) })
	if ctx.Err() != nil {
		return nil, authority{}, false
	}
	if err == nil {
		err = r.allow(o.to, to)
	}
	if err != nil {
		if !silent(o, err) {
			why := o.reason(err)
			r.deny(o.to, to.Addr(), to.Port(), why)
			o.refuse(client, why)
		}
		return nil, authority{}, false
	}
	return said.said, o.to, true
}

// silent reports whether the client went away without a word, which is no
// attempt at anything.
func silent(o opening, err error) bool {
	_, refused := errors.AsType[*Refusal](err)
	return o.kind == 0 && !refused && reasonOf(err, "") == ""
}

// allow checks what a connection named against where it goes.
func (r *Router) allow(named authority, to netip.AddrPort) error {
	if named.port != 0 && named.port != to.Port() {
		return refuse(egress.OtherHost, "the port it names is another one")
	}
	if named.addr.IsValid() && named.addr != to.Addr() {
		return refuse(egress.OtherHost, "the address it names is another one")
	}
	d := r.policy.Decide(egress.Request{Host: named.host, Addr: to.Addr(), Port: to.Port()})
	switch {
	case !d.Allowed:
		return refuse(d.Reason, "")
	case named.host != "" && !r.pins.Has(named.host, to.Addr(), time.Now()):
		return refuse(egress.Unpinned, "")
	}
	return nil
}
