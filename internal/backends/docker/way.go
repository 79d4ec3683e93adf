package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// way is what leads out of a sandbox that has an allowlist: a network that
// holds nobody but the sandbox and its gateway, the gateway, and its uplink.
// All of it carries the same set, and goes with the sandbox.
type way struct {
	set     string
	image   string // of the gateway
	pool    string // that the networks are out of
	ipv6    bool   // the host's kernel has it, so that it has to be turned off
	inside  string // id of the network
	uplink  string // id of the network
	own     bool   // the uplink is the gateway's own
	gateway netip.Addr
	cfg     boot.Config
	heard   *lines
}

const (
	// wayLimit bounds the time until a gateway is ready.
	wayLimit = 30 * time.Second

	// rounds is how often two networks are looked for: others take some at the
	// same time.
	rounds = 8
)

var errNoWay = fmt.Errorf("the gateway did not come up within %v", wayLimit)

// openWay makes all that leads out, and returns once the gateway has shown
// that the policy is in place. On an error nothing of it is left, or it is
// reported as leaked.
func (b *Backend) openWay(ctx context.Context, cli *client.Client, o order) (*way, error) {
	w := &way{set: nonce(), pool: b.opts.pool().String()}
	err := b.buildWay(ctx, cli, o, w)
	if err == nil {
		return w, nil
	}
	err = b.sweptWay(ctx, cli, w, err)
	return nil, b.closeAfter(ctx, cli, w, "create", err)
}

func (b *Backend) buildWay(ctx context.Context, cli *client.Client, o order, w *way) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wayLimit, errNoWay)
	defer cancel()
	slow := func(err error) error {
		if err != nil && errors.Is(context.Cause(ctx), errNoWay) {
			return &driver.Error{Code: driver.CodeUnavailable, Hint: hintDoctor, Err: errNoWay}
		}
		return err
	}
	var err error
	if w.image, err = b.gatewayImage(ctx, cli); err != nil {
		return slow(err)
	}
	router, err := b.givenUplink(ctx, cli, w)
	if err != nil {
		return slow(err)
	}
	around, err := b.surroundings(ctx, cli, o, w)
	if err != nil {
		return slow(err)
	}
	if err := refuseLax(around.host, o.spec.Detached); err != nil {
		return slow(err)
	}
	w.ipv6 = around.host.IPv6
	w.cfg = boot.Config{Rules: o.spec.Network.Egress, Protect: around.protect, Upstream: b.upstream(around.host), UID: newUID(), Owned: !o.spec.Detached,
		Uplink: w.cfg.Uplink, Router: router, Lifetime: o.expires.Sub(o.created) + greetLimit}
	w.cfg.Protect = append(w.cfg.Protect, driver.Range{Prefix: b.opts.pool(), Class: driver.ClassPrivate})
	if err := b.makeNetworks(ctx, cli, o, w, around.taken); err != nil {
		return slow(err)
	}
	w.gateway = nth(w.cfg.Inside, 1)
	w.cfg.Gateway = w.gateway
	return slow(b.startGateway(ctx, cli, o, w))
}

// givenUplink finds the network that the operator chose for the uplinks of all
// gateways, and gives its router; none when each has its own.
func (b *Backend) givenUplink(ctx context.Context, cli *client.Client, w *way) (netip.Addr, error) {
	w.own = b.opts.Uplink == ""
	if w.own {
		return netip.Addr{}, nil
	}
	bad := func(code driver.Code, problem string) error {
		return &driver.Error{Code: code, Field: "uplink", Hint: "docker network create " + b.opts.Uplink + ", or leave uplink out", Err: fmt.Errorf("the network %q %s", b.opts.Uplink, problem)}
	}
	res, err := cli.NetworkInspect(ctx, b.opts.Uplink, client.NetworkInspectOptions{})
	if absent(err) {
		return netip.Addr{}, bad(driver.CodeNotFound, "does not exist")
	}
	if err != nil {
		return netip.Addr{}, err
	}
	w.uplink = res.Network.ID
	for _, c := range res.Network.IPAM.Config {
		if c.Subnet.IsValid() && c.Subnet.Addr().Is4() && c.Gateway.IsValid() {
			w.cfg.Uplink = c.Subnet.Masked()
			return c.Gateway, nil
		}
	}
	return netip.Addr{}, bad(driver.CodeInvalid, "has no IPv4 subnet with a gateway")
}

// makeNetworks makes the network inside, and the uplink unless it is given.
func (b *Backend) makeNetworks(ctx context.Context, cli *client.Client, o order, w *way, taken []netip.Prefix) error {
	p := pool{within: b.opts.pool(), taken: taken}
	n := 1
	if w.own {
		n = 2
	}
	var err error
	for range rounds {
		var nets []netip.Prefix
		if nets, err = p.free(n); err != nil {
			return err
		}
		var errs [2]error
		var all sync.WaitGroup
		all.Go(func() { w.inside, errs[0] = b.createNetwork(ctx, cli, o.insideNetwork(w, nets[0])) })
		if w.own {
			all.Go(func() { w.uplink, errs[1] = b.createNetwork(ctx, cli, o.uplinkNetwork(w, nets[1])) })
		}
		all.Wait()
		if err = errors.Join(errs[:]...); err == nil {
			w.cfg.Inside = nets[0]
			if w.own {
				w.cfg.Uplink, w.cfg.Router = nets[1], nth(nets[1], 1)
			}
			return nil
		}
		// Somebody was faster: what was made goes, and the next are tried.
		inside := w.inside
		w.inside = ""
		for i, id := range []string{inside, w.uplink} {
			if errs[i] == nil && id != "" && (i == 0 || w.own) {
				if rerr := b.removeNetwork(context.WithoutCancel(ctx), cli, id); rerr != nil {
					return errors.Join(err, rerr)
				}
			}
			if errs[i] != nil && !overlaps(errs[i]) {
				return err
			}
		}
		p.taken = append(p.taken, nets...)
	}
	return err
}

// overlaps reports whether a network was refused because its addresses are
// taken.
func overlaps(err error) bool { return strings.Contains(strings.ToLower(err.Error()), "overlap") }

type networkOrder struct {
	name string
	opts client.NetworkCreateOptions
}

func (o order) network(w *way, name string, subnet netip.Prefix, options map[string]string) networkOrder {
	v4, v6 := true, false
	labels := o.partLabels(driver.RoleNetwork, w.set)
	labels[labelPool] = w.pool
	return networkOrder{namePrefix + name + "-" + o.spec.Token + "-" + w.set, client.NetworkCreateOptions{
		Driver: "bridge", EnableIPv4: &v4, EnableIPv6: &v6, Options: options, Labels: labels,
		IPAM: &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: subnet, Gateway: nth(subnet, 1)}}},
	}}
}

// insideNetwork is where the host has no address: its router is the gateway, or
// nobody.
func (o order) insideNetwork(w *way, subnet netip.Prefix) networkOrder {
	return o.network(w, "inside", subnet, map[string]string{
		"com.docker.network.bridge.inhibit_ipv4":         "true",
		"com.docker.network.bridge.enable_ip_masquerade": "false",
	})
}

// uplinkNetwork is the gateway's alone, so that it has no neighbours to be kept
// from: for enable_icc=false an engine would send all that crosses any bridge
// of its host through the packet filter.
func (o order) uplinkNetwork(w *way, subnet netip.Prefix) networkOrder {
	return o.network(w, "uplink", subnet, nil)
}

func (w *way) endpoint() *network.EndpointSettings {
	if !w.own {
		return &network.EndpointSettings{}
	}
	return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: nth(w.cfg.Uplink, 2)}}
}

// into puts the sandbox of an order on the way: its only interface is in the
// network inside, and names are resolved by the gateway alone.
func (w *way) into(opts *client.ContainerCreateOptions) {
	opts.Config.Labels[labelSet] = w.set
	h := opts.HostConfig
	h.NetworkMode = container.NetworkMode(w.inside)
	h.DNS = []netip.Addr{w.gateway}
	h.DNSSearch = []string{"."}
	if w.ipv6 {
		h.Sysctls = map[string]string{"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
	}
	opts.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		w.inside: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: nth(w.cfg.Inside, 3)}}}}
}

// createNetwork makes a network, and does not give up on the answer, as
// createContainer does.
func (b *Backend) createNetwork(ctx context.Context, cli *client.Client, n networkOrder) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(b.createGrace, cancel) })
	defer stop()
	res, err := cli.NetworkCreate(call, n.name, n.opts)
	switch {
	case err == nil && ctx.Err() == nil:
		return res.ID, nil
	case err == nil:
		err = ctx.Err()
	case refusedOutright(err) || overlaps(err):
		return "", err
	}
	// It may be there, or come to be: its name is this call's alone.
	clean := context.WithoutCancel(ctx)
	for end := time.Now().Add(b.searchLimit); ; time.Sleep(50 * time.Millisecond) {
		var found client.NetworkInspectResult
		ierr := bounded(clean, func(ctx context.Context) (err error) {
			found, err = cli.NetworkInspect(ctx, n.name, client.NetworkInspectOptions{})
			return err
		})
		if ierr == nil {
			return "", errors.Join(err, b.removeNetwork(clean, cli, found.Network.ID))
		}
		if time.Now().After(end) {
			if absent(ierr) {
				return "", err
			}
			return "", errors.Join(err, leaked("create", n.name, ierr))
		}
	}
}

// refuseLax refuses a host whose own programs a sandbox could send to: on the
// bridge, where the host has no address, it would still take in what is sent to
// everybody. Mode proxy needs no bridge, and an owner.
func refuseLax(h boot.Host, detached bool) error {
	if !h.Lax {
		return nil
	}
	return &driver.Error{Code: driver.CodeUnsupported, Field: "network.mode", Hint: orProxy("on the engine's host: sysctl -w net.ipv4.conf.all.rp_filter=2, and the same in /etc/sysctl.d", detached),
		Err: errors.New("the engine's host takes in what a sandbox sends to everybody on its network, since net.ipv4.conf.all.rp_filter and …default.rp_filter are 0")}
}

// orProxy adds to a fix, of an engine that gateways cannot be on, to do without.
func orProxy(fix string, detached bool) string {
	if detached {
		return fix
	}
	return fix + `; or set mode to "proxy"`
}
