package kernel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Interface finds the interface that has an address in p: the engine gives
// them names in no order that could be relied on.
func Interface(p netip.Prefix) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			return "", err
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if addr, ok := netip.AddrFromSlice(n.IP); ok && p.Contains(addr.Unmap()) {
					return i.Name, nil
				}
			}
		}
	}
	return "", fmt.Errorf("no interface has an address in %s", p)
}

// IPv6 lists the interfaces that still have IPv6. The container that a
// gateway runs in is made without it.
func IPv6() ([]string, error) {
	var with []string
	if _, err := os.Stat("/proc/sys/net/ipv6"); errors.Is(err, os.ErrNotExist) {
		return nil, nil // a kernel without it
	}
	flags, err := filepath.Glob("/proc/sys/net/ipv6/conf/*/disable_ipv6")
	if err != nil || len(flags) == 0 {
		return nil, fmt.Errorf("whether there is IPv6 cannot be told: %w", errors.Join(err, os.ErrNotExist))
	}
	for _, f := range flags {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		// Loopback's own flag follows "all" only if it was there at the time.
		if name := filepath.Base(filepath.Dir(f)); strings.TrimSpace(string(b)) != "1" && name != "lo" {
			with = append(with, name)
		}
	}
	return with, nil
}

// Route makes the way through router on the interface the only default route.
func Route(uplink string, router netip.Addr) error {
	link, err := netlink.LinkByName(uplink)
	if err != nil {
		return err
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if isDefault(r) {
			if err := netlink.RouteDel(&r); err != nil {
				return fmt.Errorf("a default route that is another's: %w", err)
			}
		}
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: router.AsSlice()}); err != nil {
		return fmt.Errorf("the default route: %w", err)
	}
	if routes, err = netlink.RouteList(nil, netlink.FAMILY_V4); err != nil {
		return err
	}
	n := 0
	for _, r := range routes {
		if isDefault(r) {
			n++
			if gw, _ := netip.AddrFromSlice(r.Gw); gw.Unmap() != router || r.LinkIndex != link.Attrs().Index {
				n++
			}
		}
	}
	if n != 1 {
		return errors.New("the default route is not the one that was set")
	}
	return nil
}

func isDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}

// IFLA_INET_CONF, and of what is in it IPV4_DEVCONF_FORWARDING and
// IPV4_DEVCONF_ARP_NOTIFY.
const (
	inetConf   = 1
	forwarding = 1
	arpNotify  = 22
)

// turnOn sets a setting of an interface by netlink, since a container's
// /proc/sys is read-only.
func turnOn(link netlink.Link, setting int) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(link.Attrs().Index)
	req.AddData(msg)
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC|unix.NLA_F_NESTED, nil)
	inet := spec.AddRtAttr(unix.AF_INET|unix.NLA_F_NESTED, nil)
	conf := inet.AddRtAttr(inetConf|unix.NLA_F_NESTED, nil)
	conf.AddRtAttr(setting, nl.Uint32Attr(1))
	req.AddData(spec)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// Forwarding tells whether packets that come in by an interface are passed on.
func Forwarding(name string) (bool, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + name + "/forwarding")
	return strings.TrimSpace(string(b)) == "1", err
}

// Forward lets packets that come in by these interfaces be passed on, and no
// others: a gateway is made without forwarding, and begins it itself once its
// filter stands.
func Forward(names ...string) error {
	for _, name := range names {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := turnOn(link, forwarding); err != nil {
			return fmt.Errorf("forwarding on %s: %w", name, err)
		}
		on, err := Forwarding(name)
		if err != nil {
			return err
		}
		if !on {
			return &driver.Error{Code: driver.CodeUnsupported, Field: "network", Hint: "use a kernel of version 5.4 or later, or mode \"proxy\"", Err: fmt.Errorf("forwarding on %s does not stay on", name)}
		}
	}
	return nil
}

// Claim takes an address, and a hardware address that nobody has known before:
// what a sandbox still knows of a gateway that was there earlier leads nowhere
// until now, when all else is in place and the new one is announced.
func Claim(inside string, addr netip.Prefix) error {
	link, err := netlink.LinkByName(inside)
	if err != nil {
		return err
	}
	if err := turnOn(link, arpNotify); err != nil {
		return fmt.Errorf("announcing an address: %w", err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32)}}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("taking %s: %w", addr, err)
	}
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac) // never fails
	mac[0] = mac[0]&^1 | 2
	if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
		return fmt.Errorf("a hardware address of its own: %w", err)
	}
	return nil
}

// Routes are the IPv4 networks that there is a way to, without the default
// route.
func Routes() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, r := range routes {
		if isDefault(r) {
			continue
		}
		addr, ok := netip.AddrFromSlice(r.Dst.IP)
		ones, _ := r.Dst.Mask.Size()
		if ok {
			out = append(out, netip.PrefixFrom(addr.Unmap(), ones).Masked())
		}
	}
	return out, nil
}
