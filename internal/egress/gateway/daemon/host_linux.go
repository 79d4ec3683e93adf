package daemon

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/kernel"
)

// host looks at the network namespace that it is in: the host's, when it was
// started for that.
func host() (boot.Host, error) {
	h := boot.Host{Servers: servers()}
	if _, err := os.Stat("/proc/sys/net/ipv6"); err == nil {
		h.IPv6 = true
	}
	var err error
	if h.Lax, err = lax(); err != nil {
		return h, err
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return h, err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok && addr.Unmap().Is4() {
				h.Addrs = append(h.Addrs, addr.Unmap())
			}
		}
	}
	h.Routes, err = kernel.Routes()
	return h, err
}

// lax reports whether the host listens to senders that it knows no way to, on
// an interface that is made next. The larger of the two settings counts, and
// either other value drops what comes in by an interface without an address.
func lax() (bool, error) {
	for _, of := range []string{"all", "default"} {
		b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + of + "/rp_filter")
		if err != nil {
			return false, err
		}
		if strings.TrimSpace(string(b)) != "0" {
			return false, nil
		}
	}
	return true, nil
}

// servers are those of resolv.conf.
func servers() []netip.Addr {
	f, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []netip.Addr
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil {
			out = append(out, a.Unmap().WithZone(""))
		}
	}
	return out
}
