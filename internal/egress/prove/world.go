package prove

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	binary    = "/sandboxio-probe"
	label     = "sandboxio.prove" // on all that a run makes
	proxyPort = 3128

	networkPrefix = "sandboxio-prove-"

	// closeLimit bounds the removal of what a run has made.
	closeLimit = 30 * time.Second
)

// ranges are for documentation: no real network has them, and a rule opens
// them as it does public ones.
var ranges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("192.0.2.0/24")}

// newRange6 is one of those for documentation, so that two runs rarely have the
// same.
func newRange6() netip.Prefix {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	_, _ = rand.Read(a[4:8]) // never fails
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// world is the internet of a run: a network whose router is a canary, which has
// every address that is tried; another network with a neighbour; and a canary
// in the engine's own network.
type world struct {
	cli      *client.Client
	id       string
	image    string
	name     string // of the network
	near     string
	env      probe.Env
	six      bool
	range6   netip.Prefix
	witness  witness
	canaries []*canary
	undo     []func(context.Context) error
}

func token(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// host is an address of the world's network.
func host(p netip.Prefix, n byte) netip.Addr {
	if p.Addr().Is6() {
		b := p.Addr().As16()
		b[15] = n
		return netip.AddrFrom16(b)
	}
	b := p.Addr().As4()
	b[3] = n
	return netip.AddrFrom4(b)
}

// The addresses of the world: these, and from firstDenied on one for each
// attempt.
const (
	routerHost, allowedHost, cidrHost, nextHost, namesHost = 1, 10, 30, 31, 53
	firstDenied, lastDenied                                = 60, 223
)

// build makes a world. What it made goes with close, also after an error.
func (w *world) build(ctx context.Context, program []byte) error {
	w.id, w.range6 = token(4), newRange6()
	if err := w.importImage(ctx, program); err != nil {
		return fmt.Errorf("the probe's image: %w", err)
	}
	if err := w.hold(ctx); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	at, err := w.networks(ctx)
	if err != nil {
		return fmt.Errorf("the canaries' network: %w", err)
	}
	w.env = probe.Env{World: host(at, routerHost), Allowed: host(at, allowedHost), CIDR: host(at, cidrHost), Next: host(at, nextHost), Names: host(at, namesHost), Private: probe.Specials[3], HostPort: w.canaries[0].port}
	if err := w.startCanaries(ctx, at); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	return nil
}

func (w *world) labels() map[string]string { return map[string]string{label: w.id} }

// importImage makes an image with nothing but the probe in it.
func (w *world) importImage(ctx context.Context, program []byte) error {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: binary[1:], Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = t.Write(program)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	tag := "sandboxio-probe:" + w.id
	res, err := w.cli.ImageImport(ctx, client.ImageImportSource{Source: &b, SourceName: "-"}, tag, client.ImageImportOptions{Changes: []string{`ENTRYPOINT ["` + binary + `"]`}})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res)
	if err = errors.Join(err, res.Close()); err != nil {
		return err
	}
	got, err := w.cli.ImageInspect(ctx, tag)
	if err != nil {
		return err
	}
	w.image = got.ID
	w.undo = append(w.undo, func(ctx context.Context) error { return removeImage(ctx, w.cli, tag) })
	return nil
}

// networks makes the two, the first one with IPv6 where the engine has it.
func (w *world) networks(ctx context.Context) (netip.Prefix, error) {
	w.name, w.near = networkPrefix+"a-"+w.id, networkPrefix+"z-"+w.id
	var errs []error
	for _, six := range []bool{true, false} {
		for _, p := range ranges {
			ipam := &network.IPAM{Config: []network.IPAMConfig{{Subnet: p, Gateway: host(p, routerHost), IPRange: netip.PrefixFrom(host(p, 224), 27)}}}
			if six {
				ipam.Config = append(ipam.Config, network.IPAMConfig{Subnet: w.range6, Gateway: host(w.range6, routerHost)})
			}
			err := w.network(ctx, client.NetworkCreateOptions{Driver: "bridge", EnableIPv6: &six, IPAM: ipam, Options: map[string]string{
				"com.docker.network.bridge.inhibit_ipv4":         "true",
				"com.docker.network.bridge.enable_ip_masquerade": "false",
			}}, w.name)
			if err == nil {
				w.six = six
				// No way to the world, but the engine's host is on it.
				return p, w.network(ctx, client.NetworkCreateOptions{Driver: "bridge", Internal: true}, w.near)
			}
			errs = append(errs, err)
		}
	}
	return netip.Prefix{}, crowded(errs)
}

// crowded tells that others have all ranges, if it is that.
func crowded(errs []error) error {
	err := errors.Join(errs...)
	for _, e := range errs {
		if !strings.Contains(strings.ToLower(e.Error()), "overlap") {
			return err
		}
	}
	return &driver.Error{Code: driver.CodeExhausted, Hint: "wait for other runs to end, or remove what else has one: docker network ls",
		Err: fmt.Errorf("the three ranges for documentation are in use on this engine: %w", err)}
}

func (w *world) network(ctx context.Context, o client.NetworkCreateOptions, name string) error {
	o.Labels = w.labels()
	made, err := w.cli.NetworkCreate(ctx, name, o)
	if err == nil {
		w.undo = append(w.undo, func(ctx context.Context) error { return removeNetwork(ctx, w.cli, made.ID) })
	}
	return err
}

// container makes one with the probe's image, and starts it on the network of
// h and on others.
func (w *world) container(ctx context.Context, cmd []string, h container.HostConfig, ends map[string]*network.EndpointSettings, others ...string) (*talker, error) {
	h.AutoRemove, h.LogConfig = true, container.LogConfig{Type: "none"}
	made, err := w.cli.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: w.image, Entrypoint: []string{binary}, Cmd: cmd, Labels: w.labels(), User: "0:0",
			AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true},
		HostConfig: &h, NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: ends},
	})
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, func(ctx context.Context) error { return removeContainer(ctx, w.cli, made.ID) })
	for _, name := range others {
		// Before its start: gVisor takes no interface later.
		if _, err := w.cli.NetworkConnect(ctx, name, client.NetworkConnectOptions{Container: made.ID}); err != nil {
			return nil, err
		}
	}
	return attach(ctx, w.cli, made.ID)
}

// canary starts one.
func (w *world) canary(ctx context.Context, of probe.World, h container.HostConfig, ends map[string]*network.EndpointSettings) (*canary, error) {
	of.Env = w.env
	config, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	t, err := w.container(ctx, []string{"canary", string(config)}, h, ends)
	if err != nil {
		return nil, err
	}
	c, err := listen(ctx, t, &w.witness)
	w.canaries = append(w.canaries, c)
	return c, err
}

// hold starts the canary in the engine's own network. It is the run's first
// container, by which others see that the run lives.
func (w *world) hold(ctx context.Context) error {
	_, err := w.canary(ctx, probe.World{Free: true}, container.HostConfig{NetworkMode: "host"}, nil)
	return err
}

func (w *world) startCanaries(ctx context.Context, at netip.Prefix) error {
	tcp := []uint16{22, 25, 53, 80, 443, 853, 1080, 2375, proxyPort, 5432, probe.OpenPort, 8443}
	udp := []uint16{53, 123, 443, probe.OpenPort, 9999, 51820}
	near, err := w.canary(ctx, probe.World{TCP: tcp, UDP: udp, Sniff: true}, container.HostConfig{NetworkMode: container.NetworkMode(w.near), CapAdd: []string{"NET_RAW"}}, nil)
	if err != nil {
		return err
	}
	info, err := w.cli.ContainerInspect(ctx, near.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	end := info.Container.NetworkSettings.Networks[w.near]
	net, err := w.cli.NetworkInspect(ctx, w.near, client.NetworkInspectOptions{})
	if err != nil {
		return err
	}
	if end == nil || !end.IPAddress.IsValid() || len(net.Network.IPAM.Config) == 0 {
		return errors.New("the engine gave the neighbour no address")
	}
	w.env.Near, w.env.Engine = end.IPAddress, net.Network.IPAM.Config[0].Gateway
	if !w.env.Engine.IsValid() {
		w.env.Engine = net.Network.IPAM.Config[0].Subnet.Masked().Addr().Next()
	}

	of := probe.World{TCP: tcp, UDP: udp, Sniff: true, Iface: "eth0"}
	for n := byte(routerHost); n <= lastDenied; n++ {
		if n != allowedHost { // its own
			of.Addrs = append(of.Addrs, netip.PrefixFrom(host(at, n), at.Bits()))
		}
		if n >= firstDenied && w.six {
			of.Addrs = append(of.Addrs, netip.PrefixFrom(host(w.range6, n), w.range6.Bits()))
		}
	}
	for _, a := range probe.Specials {
		of.Addrs = append(of.Addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	h := container.HostConfig{NetworkMode: container.NetworkMode(w.name), CapAdd: []string{"NET_ADMIN", "NET_RAW"}}
	_, err = w.canary(ctx, of, h, map[string]*network.EndpointSettings{w.name: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: w.env.Allowed}}})
	return err
}

// mark returns once everything that came so far is in the witness.
func (w *world) mark(ctx context.Context) error {
	word := token(8)
	for _, c := range w.canaries {
		if err := c.mark(ctx, word); err != nil {
			return err
		}
	}
	return nil
}

// close removes all that the world made, the last first.
func (w *world) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	for _, c := range w.canaries {
		c.close()
	}
	var errs []error
	for _, undo := range slices.Backward(w.undo) {
		errs = append(errs, undo(ctx))
	}
	return errors.Join(errs...)
}
