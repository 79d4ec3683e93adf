package daemon

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/kernel"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/relay"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// post is a gateway that has come up.
type post struct {
	cfg      boot.Config
	tally    *egress.Tally
	resolver *gateway.Resolver
	router   *gateway.Router
	crew     *relay.Crew // which carries what the router has allowed
	opening  int         // connections that may be on their way to it

	policy  *egress.Policy
	dropped *kernel.Notes
	turned  *net.TCPListener // connections that were turned aside
	queries *net.UDPConn
	longer  *net.TCPListener // queries over TCP

	asked chan int // how many of its owner's questions have come
}

// open brings a gateway up, in the order that lets nothing through before the
// policy is in place. On an error it may have set the packet filter, which then
// drops everything, and nothing else that lasts.
func open(ctx context.Context, cfg boot.Config) (p *post, ready boot.Ready, err error) {
	p = &post{cfg: cfg, tally: &egress.Tally{}, asked: make(chan int)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	policy, err := egress.Compile(cfg.Rules, egress.Options{Protect: cfg.Protect})
	if err != nil {
		return p, ready, err
	}
	p.policy = policy
	pins := &gateway.Pins{}
	p.resolver = gateway.NewResolver(gateway.ResolverOptions{Policy: policy, Pins: pins, Denials: p.tally})
	files, err := kernel.Descriptors()
	if err != nil {
		return p, ready, err
	}
	if p.opening, err = openings(files); err != nil {
		return p, ready, err
	}

	if err := kernel.Able(); err != nil {
		return p, ready, err
	}
	if ready.IPv6, err = kernel.IPv6(); err != nil {
		return p, ready, err
	}
	if len(ready.IPv6) > 0 {
		return p, ready, &driver.Error{Code: driver.CodeUnsupported, Field: "network", Hint: "upgrade Docker Engine, or boot its host with ipv6.disable=1", Err: errIPv6(ready.IPv6)}
	}
	if ready.Inside, err = kernel.Interface(cfg.Inside); err != nil {
		return p, ready, err
	}
	if ready.Uplink, err = kernel.Interface(cfg.Uplink); err != nil {
		return p, ready, err
	}
	for _, name := range []string{ready.Inside, ready.Uplink} {
		on, err := kernel.Forwarding(name)
		if err != nil {
			return p, ready, err
		}
		if on {
			return p, ready, errEarly
		}
	}

	if p.dropped, err = kernel.ListenNotes(); err != nil {
		return p, ready, err
	}
	rules, err := gateway.Firewall(cfg.Rules, cfg.Site(ready.Inside, ready.Uplink))
	if err != nil {
		return p, ready, err
	}
	if err := kernel.Apply(rules); err != nil {
		return p, ready, err
	}
	ready.Ruleset = boot.DigestOf(rules)
	if err := kernel.Route(ready.Uplink, cfg.Router); err != nil {
		return p, ready, err
	}
	if err := p.listen(ctx); err != nil {
		return p, ready, err
	}
	if err := kernel.Forward(ready.Inside, ready.Uplink); err != nil {
		return p, ready, err
	}
	own := netip.PrefixFrom(cfg.Gateway, cfg.Inside.Bits())
	if err := kernel.Claim(ready.Inside, own); err != nil {
		return p, ready, err
	}
	ready.Address = own.String()
	if err := kernel.Drop(cfg.UID); err != nil {
		return p, ready, err
	}
	ready.UID = cfg.UID
	if ready.Caps, err = kernel.Caps(); err != nil {
		return p, ready, err
	}
	// What it starts from here on has no privileges either.
	if p.crew, err = relay.Open(ctx, relay.Options{Conns: mostConns, Files: files, Memory: shareMemory()}); err != nil {
		return p, ready, err
	}
	p.router = gateway.NewRouter(gateway.RouterOptions{Policy: policy, Pins: pins, Denials: p.tally, Dial: dial, Carry: p.crew.Carry, Conns: mostConns})
	return p, ready, nil
}

const (
	mostConns = 10_000
	// spare descriptors are for questions, for those who ask them over TCP, and
	// for up to 24 relays, of two each; each connection that begins takes two.
	spare = asking + 2*talking + 96
)

// openings is how many connections may be on their way to a relay, when a
// process may have so many files open.
func openings(files int) (int, error) {
	if files < relay.MinFiles {
		return 0, driver.Unsupported("network", fmt.Sprintf("a process in a container may have %d files open, and a gateway takes at least %d", files, relay.MinFiles),
			`set "default-ulimits": {"nofile": {"Name": "nofile", "Soft": 20000, "Hard": 20000}} in the engine's daemon.json, and restart it`)
	}
	return min(mostConns, (files-spare)/2), nil
}

// shareMemory leaves a quarter of what the gateway was given to this process,
// and gives what is left for its relays; 0 when it was given no bound.
func shareMemory() int64 {
	all := debug.SetMemoryLimit(-1)
	if all == math.MaxInt64 {
		return 0
	}
	debug.SetMemoryLimit(all / 4)
	return all - all/4
}

func (p *post) listen(ctx context.Context) (err error) {
	// On no address in particular: where a redirect leads is the kernel's choice
	// among those of the interface, and the filter lets nothing else in.
	if p.turned, err = kernel.Listen(ctx, netip.AddrPortFrom(netip.IPv4Unspecified(), boot.ProxyPort)); err != nil {
		return err
	}
	dns := netip.AddrPortFrom(p.cfg.Gateway, 53)
	if p.queries, err = kernel.ListenPacket(ctx, dns); err != nil {
		return err
	}
	p.longer, err = kernel.Listen(ctx, dns)
	return err
}

// close ends all of it.
func (p *post) close() {
	p.shut()
	if p.dropped != nil {
		_ = p.dropped.Close()
	}
}

// shut ends all but what it knows of packets that were dropped.
func (p *post) shut() {
	for _, l := range []*net.TCPListener{p.turned, p.longer} {
		if l != nil {
			_ = l.Close()
		}
	}
	if p.queries != nil {
		_ = p.queries.Close()
	}
	if p.crew != nil {
		p.crew.Close()
	}
}

// serve works until ctx ends, and returns when all of it has.
func (p *post) serve(ctx context.Context, out *speaker) {
	defer p.close() // and wait for the relays
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, p.shut)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	// Whichever of them ends, the gateway does: half a gateway is not one.
	for _, work := range []func(){
		func() { p.route(ctx) },
		func() { p.answer(ctx) },
		func() { p.converse(ctx) },
		func() { p.dropped.Read(p.note) },
	} {
		all.Go(func() {
			defer cancel()
			work()
		})
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	signaled := make(chan os.Signal, 1)
	signal.Notify(signaled, syscall.SIGUSR1)
	defer signal.Stop(signaled)
	var told told
	answer := func() { // also that there was nothing
		p.dropped.CatchUp(p.note)
		told.answer(p.tally, out)
	}
	for {
		select {
		case <-tick.C:
			told.tell(p.tally, out)
		case n := <-p.asked:
			told.asked += n
			answer()
		case <-signaled:
			answer()
		case <-ctx.Done():
			answer()
			_ = p.dropped.Close() // which ends its reader
			return
		}
	}
}

// hear takes an owner's questions until there are no more.
func (p *post) hear(ctx context.Context, owner io.Reader) {
	var buf [64]byte
	for {
		n, err := owner.Read(buf[:])
		if n > 0 {
			select {
			case p.asked <- n:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// route takes the connections that were turned aside.
func (p *post) route(ctx context.Context) {
	accept(ctx, p.turned, p.opening, func(c *net.TCPConn) {
		to, err := kernel.Meant(c)
		if err != nil {
			_ = c.Close()
			return
		}
		p.router.Serve(ctx, c, to)
	})
}

// note counts what the packet filter drops, as far as it tells of it.
func (p *post) note(packet []byte) {
	if d, ok := gateway.Dropped(p.policy, packet, time.Now()); ok {
		p.tally.Deny(d)
	}
}

func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", to.String())
}
