package driver_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestTheGroupOfADenial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, addr, reason, want string }{
		{"example.com", "", "host", "name"},
		{"", "", "malformed", "name"},
		{"example.com", "8.8.8.8", "unpinned", "address"},
		{"", "8.8.8.8", "not-tcp", "not-tcp"},
		{"", "8.8.8.8", "protected", "protected"},
		{"example.com", "169.254.169.254", "host", "metadata"},
		{"", "::ffff:169.254.169.254", "not-tcp", "metadata"},
		{"", "10.0.0.1", "not-tcp", "private"},
		{"", "fe80::1%eth0", "address", "link-local"},
	} {
		d := driver.Denial{Host: c.host, Reason: c.reason}
		if c.addr != "" {
			d.Addr = netip.MustParseAddr(c.addr)
		}
		if got := d.Group(); got != c.want {
			t.Errorf("%+v: %q, want %q", d, got, c.want)
		}
	}
}

func TestForemostTakesFromEachGroupInTurn(t *testing.T) {
	t.Parallel()
	var all []driver.Denial
	for _, host := range []string{"a.example", "b.example", "c.example", "d.example"} {
		all = append(all, driver.Denial{Host: host})
	}
	for _, a := range []string{"8.8.8.8", "10.0.0.1", "10.0.0.2", "224.0.0.1", "0.0.0.1", "240.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.1.1", "169.254.169.254"} {
		all = append(all, driver.Denial{Addr: netip.MustParseAddr(a)})
	}
	all = append(all, driver.Denial{Addr: netip.MustParseAddr("8.8.4.4"), Reason: "not-tcp"}, driver.Denial{Addr: netip.MustParseAddr("8.8.4.4"), Reason: "protected"})
	name := func(d driver.Denial) string {
		if d.Host != "" {
			return d.Host
		}
		return d.Addr.String() + d.Reason
	}
	for n, want := range map[int][]string{
		0:  nil,
		1:  {"169.254.169.254"},
		3:  {"169.254.1.1", "169.254.169.254", "8.8.4.4protected"},
		13: {"a.example", "8.8.8.8", "10.0.0.1", "10.0.0.2", "224.0.0.1", "0.0.0.1", "240.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.1.1", "169.254.169.254", "8.8.4.4not-tcp", "8.8.4.4protected"},
	} {
		var got []string
		for _, d := range driver.Foremost(all, n) {
			got = append(got, name(d))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d of them: %s", n, diff)
		}
	}
	if got := driver.Foremost(all, len(all)); len(got) != len(all) {
		t.Errorf("%d of %d", len(got), len(all))
	}
}
