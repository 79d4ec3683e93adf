package docker

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A gateway that comes up with anything but what was ordered gets no sandbox:
// that a list was loaded does not say that it applies (M30).
func TestM30AGatewayThatFoundSomethingElseIsRefused(t *testing.T) {
	w := &way{gateway: netip.MustParseAddr("100.96.0.1"), cfg: boot.Config{
		Rules:  []driver.Rule{{Host: "example.com", Ports: []uint16{443}}, {Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{22}}},
		Inside: netip.MustParsePrefix("100.96.0.0/29"), Gateway: netip.MustParseAddr("100.96.0.1"), Uplink: netip.MustParsePrefix("100.96.0.8/29"), Router: netip.MustParseAddr("100.96.0.9"),
		Upstream: netip.MustParseAddrPort("192.0.2.53:53"), UID: 64000}}
	found := func(rules ...driver.Rule) string {
		r, err := gateway.Firewall(append(rules, w.cfg.Rules...), w.cfg.Site("in0", "up0"))
		if err != nil {
			t.Fatal(err)
		}
		return boot.DigestOf(r)
	}
	for _, c := range []struct {
		name  string
		spoil func(*boot.Ready)
		says  string
	}{
		{"what was ordered", func(*boot.Ready) {}, ""},
		{"a packet filter with one rule more", func(r *boot.Ready) {
			r.Ruleset = found(driver.Rule{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Ports: []uint16{22}})
		}, "packet filter"},
		{"no packet filter", func(r *boot.Ready) { r.Ruleset = boot.DigestOf(gateway.Ruleset{}) }, "packet filter"},
		{"interfaces the wrong way round", func(r *boot.Ready) { r.Inside, r.Uplink = r.Uplink, r.Inside }, "packet filter"},
		{"root", func(r *boot.Ready) { r.UID = 0 }, "user"},
		{"a capability", func(r *boot.Ready) { r.Caps = 1 << 12 }, "capabilities"},
		{"IPv6", func(r *boot.Ready) { r.IPv6 = []string{"up0"} }, "IPv6"},
		{"another address", func(r *boot.Ready) { r.Address = "100.96.0.2/29" }, "address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := boot.Ready{Inside: "in0", Uplink: "up0", Ruleset: found(), UID: 64000, Address: "100.96.0.1/29"}
			c.spoil(&r)
			err := w.compare(r)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if driver.CodeOf(err) != driver.CodeUnsupported || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
