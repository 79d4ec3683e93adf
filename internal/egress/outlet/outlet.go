package outlet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options are what an Outlet is made of. The zero value is the machine's own
// network.
type Options struct {
	// Protect are ranges to protect beside the machine's own, which New finds.
	Protect []driver.Range

	// Conns is how many connections there are at a time; 0 = 256.
	Conns int

	// Lookup and Dial stand for the machine's in tests.
	Lookup gateway.Lookup
	Dial   gateway.Dial

	addrs func() ([]net.Addr, error) // nil = the machine's
}

// Outlet serves one sandbox. It is safe for concurrent use.
type Outlet struct {
	rules   []driver.Rule
	protect []driver.Range // beside the machine's own
	addrs   func() ([]net.Addr, error)
	proxy   *gateway.Proxy
	tally   egress.Tally

	mu     sync.Mutex
	own    []driver.Range // the machine's, when it was looked at last
	policy *egress.Policy // that protects them
}

// New makes the way out for a canonical network. It asks the machine for its
// addresses, and nothing else. Codes: invalid, unavailable (what is the
// machine's own cannot be known, and so not be protected).
func New(n driver.Network, o Options) (*Outlet, error) {
	if o.addrs == nil {
		o.addrs = net.InterfaceAddrs
	}
	if o.Lookup == nil {
		// Go's own resolver: one that ends when its context does.
		r := &net.Resolver{PreferGo: true}
		o.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) { return r.LookupNetIP(ctx, "ip", name) }
	}
	if o.Dial == nil {
		d := &net.Dialer{}
		o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to.String())
		}
	}
	out := &Outlet{rules: n.Egress, protect: o.Protect, addrs: o.addrs}
	policy, err := out.look()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		// The machine may have joined a network since the policy was made.
		switch now, err := out.look(); {
		case err != nil:
			return nil, err
		case !now.Reach(to):
			return nil, fmt.Errorf("%s has become the machine's own", to.Addr())
		}
		return o.Dial(ctx, to)
	}
	out.proxy = gateway.NewProxy(gateway.ProxyOptions{Policy: policy, Denials: &out.tally, Lookup: o.Lookup, Dial: dial, Conns: o.Conns})
	return out, nil
}

// look gives the policy that protects what is the machine's at this moment.
func (o *Outlet) look() (*egress.Policy, error) {
	own, err := machine(o.addrs)
	if err != nil {
		return nil, &driver.Error{Code: driver.CodeUnavailable, Field: "network.mode", Err: err, Hint: `use mode "transparent", or run where the network's interfaces can be listed (ip address)`}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.policy == nil || !slices.Equal(own, o.own) {
		p, err := egress.Compile(o.rules, egress.Options{Protect: append(slices.Clone(own), o.protect...)})
		if err != nil {
			return nil, err
		}
		o.own, o.policy = own, p
	}
	return o.policy, nil
}

// Serve serves one connection of a program to the proxy, until it is over or
// ctx ends; it closes conn.
func (o *Outlet) Serve(ctx context.Context, conn net.Conn) { o.proxy.Serve(ctx, conn) }

// Denied is what was refused so far, and how much more there was than is told
// apart.
func (o *Outlet) Denied() (told []egress.Denial, other int) { return o.tally.Denied() }

// machine lists what is protected because it is this machine's: each address,
// and the network that it is in. Loopback is protected anyhow, as a whole.
func machine(addrs func() ([]net.Addr, error)) ([]driver.Range, error) {
	all, err := addrs()
	if err != nil {
		return nil, fmt.Errorf("the machine's own addresses cannot be listed: %w", err)
	}
	var out []driver.Range
	for _, a := range all {
		var ip netip.Addr
		ones, known := 0, false
		switch a := a.(type) {
		case *net.IPNet:
			ip, known = netip.AddrFromSlice(a.IP)
			bits := 0
			if ones, bits = a.Mask.Size(); ip.Is4In6() && bits == 128 {
				ones -= 96
			}
		case *net.IPAddr:
			ip, known = netip.AddrFromSlice(a.IP)
		}
		if !known {
			return nil, fmt.Errorf("the machine lists %q, which is no address of an interface", a)
		}
		if ip = ip.Unmap(); ip.IsLoopback() {
			continue
		}
		class := driver.Classify(ip)
		if class == driver.ClassPublic {
			class = driver.ClassPrivate
		}
		out = append(out, driver.Range{Prefix: netip.PrefixFrom(ip, ip.BitLen()), Class: class})
		if ones > 0 {
			out = append(out, driver.Range{Prefix: netip.PrefixFrom(ip, ones).Masked(), Class: class})
		}
	}
	return out, nil
}
