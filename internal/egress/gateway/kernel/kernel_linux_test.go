package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// insideEnv names the step that this program takes in a network namespace of
// its own, where it can break nothing.
const insideEnv = "SANDBOXIO_TEST_STEP"

func TestMain(m *testing.M) {
	if name := os.Getenv(insideEnv); name != "" {
		if err := steps[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestInANamespaceOfItsOwn(t *testing.T) {
	t.Parallel()
	for name := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), insideEnv+"="+name)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if os.Getuid() != 0 {
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v (as root, or with user namespaces): %s", err, out)
			}
		})
	}
}

var (
	insideNet = netip.MustParsePrefix("198.18.0.0/29")
	uplinkNet = netip.MustParsePrefix("198.18.0.8/29")
	site      = gateway.Site{Inside: "in0", Uplink: "up0", Sandbox: insideNet, Gateway: netip.MustParseAddr("198.18.0.1"),
		Upstream: netip.MustParseAddrPort("192.0.2.53:53"), UID: 64000, ProxyPort: 15001}
)

// wire makes the two interfaces of a gateway.
func wire() error {
	for name, addr := range map[string]string{"in0": "198.18.0.2/29", "up0": "198.18.0.10/29"} {
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}
		a, err := netlink.ParseAddr(addr)
		if err == nil {
			err = netlink.LinkAdd(link)
		}
		if err == nil {
			err = netlink.AddrAdd(link, a)
		}
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ruleset(words ...string) (gateway.Ruleset, error) {
	var rules []driver.Rule
	for _, w := range words {
		r, err := driver.ParseRule(w)
		if err != nil {
			return gateway.Ruleset{}, err
		}
		rules = append(rules, r)
	}
	return gateway.Firewall(rules, site)
}

var all = []string{"example.com", "*.example.org:8443", "203.0.113.0/24:22", "10.0.0.0/8:5432", "169.254.0.0/16:80", "128.0.0.0/1:443", "255.255.255.255/32:9"}

var steps = map[string]func() error{
	"the kernel has every rule, also the second time": func() error {
		r, err := ruleset(all...)
		if err != nil {
			return err
		}
		return errors.Join(wire(), Apply(r), Apply(r))
	},
	"ten thousand networks are one transaction": func() error {
		var words []string
		for i := range 10_000 {
			words = append(words, fmt.Sprintf("%d.%d.%d.0/25:443", 11+i>>14, byte(i>>6), byte(i<<2)))
		}
		r, err := ruleset(words...)
		if err != nil {
			return err
		}
		return errors.Join(wire(), Apply(r))
	},
	"what the kernel lacks is noticed": func() error {
		r, err := ruleset(all...)
		if err != nil {
			return err
		}
		if err := errors.Join(wire(), Apply(r)); err != nil {
			return err
		}
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		lost := map[string]func(){
			"a rule": func() { r.Chains[3].Rules = r.Chains[3].Rules[1:] },
			"a policy": func() {
				r.Chains = slices.Clone(r.Chains)
				r.Chains[2].Policy = gateway.Accept
			},
			"a chain":    func() { r.Chains = r.Chains[1:] },
			"an address": func() { r.Sets[1].Spans = r.Sets[1].Spans[:len(r.Sets[1].Spans)-1] },
		}
		for what, change := range lost {
			again, err := ruleset(all...)
			if err != nil {
				return err
			}
			r = again
			change()
			if compare(conn, r) == nil {
				return fmt.Errorf("that it has %s more is not noticed", what)
			}
		}
		return nil
	},
	"the interfaces are found by their networks": func() error {
		if err := wire(); err != nil {
			return err
		}
		in, err1 := Interface(insideNet)
		up, err2 := Interface(uplinkNet)
		if _, err := Interface(netip.MustParsePrefix("192.0.2.0/24")); err == nil {
			return errors.New("one is found where there is none")
		}
		if in != "in0" || up != "up0" {
			return fmt.Errorf("%q, %q", in, up)
		}
		return errors.Join(err1, err2)
	},
	"there is one way out, whatever there was": func() error {
		if err := wire(); err != nil {
			return err
		}
		in, err := netlink.LinkByName("in0")
		if err != nil {
			return err
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: in.Attrs().Index, Gw: net.IPv4(198, 18, 0, 1)}); err != nil {
			return err
		}
		if err := Route("up0", netip.MustParseAddr("198.18.0.9")); err != nil {
			return err
		}
		routes, err := Routes()
		if err == nil && len(routes) != 2 {
			err = fmt.Errorf("%v", routes)
		}
		return err
	},
	"forwarding begins when it is told to": func() error {
		err := errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0), wire())
		if on, ferr := Forwarding("in0"); on || ferr != nil || err != nil {
			return fmt.Errorf("before: %v, %w", on, errors.Join(err, ferr))
		}
		if err := Forward("in0"); err != nil {
			return err
		}
		in, err1 := Forwarding("in0")
		up, err2 := Forwarding("up0")
		if !in || up {
			return fmt.Errorf("inside %v, uplink %v", in, up)
		}
		return errors.Join(err1, err2, Forward("up0"))
	},
	"the address comes with a hardware address of its own": func() error {
		if err := wire(); err != nil {
			return err
		}
		before, err := netlink.LinkByName("in0")
		if err != nil {
			return err
		}
		if err := Claim("in0", netip.MustParsePrefix("198.18.0.1/29")); err != nil {
			return err
		}
		after, err := netlink.LinkByName("in0")
		if err != nil {
			return err
		}
		mac := after.Attrs().HardwareAddr
		if slices.Equal(mac, before.Attrs().HardwareAddr) || mac[0]&3 != 2 {
			return fmt.Errorf("%v after %v", mac, before.Attrs().HardwareAddr)
		}
		addrs, err := netlink.AddrList(after, netlink.FAMILY_V4)
		if err == nil && len(addrs) != 2 {
			err = fmt.Errorf("%v", addrs)
		}
		return errors.Join(err, Able())
	},
	"IPv6 that is on is told": func() error {
		err := errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0), os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0), wire(),
			os.WriteFile("/proc/sys/net/ipv6/conf/up0/disable_ipv6", []byte("0"), 0))
		with, ierr := IPv6()
		if !slices.Equal(with, []string{"up0"}) {
			return fmt.Errorf("%v", with)
		}
		return errors.Join(err, ierr)
	},
	"a program that begins connection after connection fills no table": flood,
	"what was told of before a question is known when it is answered":  asked,
	"who may not is told what is missing (M16)": func() error {
		if os.Getuid() != 0 {
			return nil
		}
		r, err := ruleset(all...)
		if err == nil {
			err = wire()
		}
		// A namespace of users has one user only: then there is nobody to become.
		if m, _ := os.ReadFile("/proc/self/uid_map"); err != nil || !strings.Contains(string(m), "4294967295") {
			return err
		}
		if err := Drop(64000); err != nil {
			return err
		}
		if caps, err := Caps(); caps != 0 || err != nil {
			return fmt.Errorf("%#x, %w", caps, err)
		}
		for _, err := range []error{Able(), Apply(r)} {
			e, ok := errors.AsType[*driver.Error](err)
			if !ok || e.Code != driver.CodeUnsupported || !strings.Contains(e.Error(), "CAP_NET_ADMIN") || e.Hint == "" {
				return fmt.Errorf("it says %w", err)
			}
		}
		return nil
	},
}

// flood begins connections that nobody answers, as fast as it can.
func flood() error {
	r, err := ruleset(all...)
	if err == nil {
		err = wire()
	}
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.Chains, func(c gateway.Chain) bool { return c.Name == "begun" })
	begun := r.Chains[at]
	if err := Apply(gateway.Ruleset{Table: r.Table, Chains: []gateway.Chain{begun}}); err != nil {
		return err
	}
	up, err := netlink.LinkByName("up0")
	if err != nil {
		return err
	}
	far, err := netlink.LinkByName("up0p")
	if err == nil {
		err = netlink.LinkSetUp(far)
	}
	to := net.IPv4(198, 18, 0, 14)
	if err == nil {
		err = netlink.NeighSet(&netlink.Neigh{LinkIndex: up.Attrs().Index, IP: to, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, State: netlink.NUD_PERMANENT})
	}
	if err != nil {
		return err
	}
	begin := func(n int) error {
		for i := range n {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: 1 + i, Addr: [4]byte(to.To4())})
			_ = unix.Close(fd)
			if !errors.Is(err, unix.EINPROGRESS) {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
		return nil
	}
	dropped := func() (uint64, error) {
		conn, err := nftables.New()
		if err != nil {
			return 0, err
		}
		table := &nftables.Table{Name: r.Table, Family: nftables.TableFamilyINet}
		rules, err := conn.GetRules(table, &nftables.Chain{Name: begun.Name, Table: table})
		if err != nil {
			return 0, err
		}
		for _, e := range rules[len(rules)-1].Exprs {
			if c, ok := e.(*expr.Counter); ok {
				return c.Packets, nil
			}
		}
		return 0, errors.New("the last rule does not count")
	}
	const more = 300
	if err := begin(gateway.BeginAtATime + more); err != nil {
		return err
	}
	if n, err := dropped(); err != nil || n != more {
		return fmt.Errorf("%d of %d were dropped, want %d: %w", n, gateway.BeginAtATime+more, more, err)
	}
	// Were they all gone, there would still be only so many a second.
	if err := netlink.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
		return err
	}
	start := time.Now()
	const again = 3000
	if err := begin(again); err != nil {
		return err
	}
	n, err := dropped()
	let := again + more - int(n)
	if most := gateway.BeginRate*int(time.Since(start)/time.Second+30) + more; err != nil || let > most {
		return fmt.Errorf("%d more were let through in %v, want at most %d: %w", let, time.Since(start), most, err)
	}
	return nil
}
