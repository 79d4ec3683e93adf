package docker

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// proxyNetwork is the mechanism of mode proxy as a whole.
const proxyNetwork = closedNetwork + "; a proxy in the owner's process is reached over the guest's connection"

// proxied reports whether a sandbox gets a proxy.
func proxied(n driver.Network) bool { return n.Mode == driver.Proxy && (len(n.Egress) > 0 || n.Learn) }

// detachedFix is for those who write Terraform too, whose sandboxes are all
// detached.
const detachedFix = `set mode to "transparent", or run it from a Go program with package sandbox, without Detached`

// checkProxy decides whether there will be a process for the proxy to be in,
// and gives the mechanism as a whole.
func (b *Backend) checkProxy(spec driver.Spec) (string, error) {
	if spec.Detached {
		return "", driver.Unsupported("network.mode", "a detached sandbox has no owner to run the proxy", detachedFix)
	}
	return proxyNetwork, nil
}

// openOutlet makes the way out that the network asks for; nil if it asks for
// none.
func (b *Backend) openOutlet(n driver.Network) (*outlet.Outlet, error) {
	if !proxied(n) {
		return nil, nil
	}
	opts := b.outlet
	opts.Conns = guest.MaxTunnels
	opts.Protect = append(slices.Clone(opts.Protect), b.engineRange()...)
	return outlet.New(n, opts)
}

// engineRange protects the engine itself, where it is reached by an address:
// whoever speaks to it is root on its host. A name is not looked up; what it
// leads to needs a certificate, or is on this machine.
func (b *Backend) engineRange() []driver.Range {
	e := b.endpoint.Load()
	if e == nil {
		return nil
	}
	_, at, _ := strings.Cut(e.host, "://")
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return nil
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	a = a.Unmap().WithZone("")
	return []driver.Range{{Prefix: netip.PrefixFrom(a, a.BitLen()), Class: driver.ClassPrivate}}
}

// listen lets programs reach the way out, if there is one.
func (o order) listen(ctx context.Context, c *guest.Client) error {
	if o.outlet == nil {
		return nil
	}
	return c.Listen(ctx, func(ctx context.Context, conn guest.Conn) { o.outlet.Serve(ctx, conn) })
}

// env is what every program in the sandbox gets. The names of the proxy are
// reserved, so that nothing of the caller's is lost.
func (o order) env() map[string]string {
	if o.outlet == nil {
		return o.spec.Env
	}
	env := maps.Clone(o.spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", guest.ProxyPort)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env[name] = url
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		env[name] = "localhost,127.0.0.1,::1" // the sandbox's own
	}
	return env
}

// Denied tells what the sandbox was refused: by its gateway, or by the proxy in
// this process, so that only who created it knows.
func (s *sandbox) Denied(ctx context.Context) (driver.Denials, error) {
	if s.set != "" {
		d, err := s.deniedByGateway(ctx)
		return d, fail(ctx, "denied", s.id, err)
	}
	if s.outlet == nil {
		return driver.Denials{Unknown: s.proxied}, nil
	}
	told, other := s.outlet.Denied()
	d := driver.Denials{Other: other}
	for _, one := range told {
		d.Told = append(d.Told, one.Driver())
	}
	return d, nil
}
