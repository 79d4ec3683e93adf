package docker

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestAPoolGivesEveryNetworkOnceAndNoneThatIsTaken(t *testing.T) {
	t.Parallel()
	p := pool{within: netip.MustParsePrefix("198.18.0.0/24"), taken: []netip.Prefix{netip.MustParsePrefix("198.18.0.64/28"), netip.MustParsePrefix("10.0.0.0/8")}}
	var got []netip.Prefix
	for range 30 {
		n, err := p.free(1)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(p.taken, n[0].Overlaps) || !p.within.Overlaps(n[0]) || n[0].Bits() != subnetBits {
			t.Fatalf("%v", n[0])
		}
		got = append(got, n[0])
		p.taken = append(p.taken, n[0])
	}
	if _, err := p.free(1); driver.CodeOf(err) != driver.CodeExhausted {
		t.Errorf("of 32 networks, 2 of them taken, it gave 30 and then: %v", err)
	}
	if a := nth(got[0], 3); !got[0].Contains(a) {
		t.Errorf("%v is not in %v", a, got[0])
	}
}

func TestTwoNetworksAreApart(t *testing.T) {
	t.Parallel()
	for range 200 {
		two, err := pool{within: netip.MustParsePrefix("198.18.0.0/28")}.free(2)
		if err != nil || two[0].Overlaps(two[1]) {
			t.Fatalf("%v, %v", two, err)
		}
	}
}

func TestTheNameServerIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, option string
		host         []string
		want         string
	}{
		{"the operator's choice", "192.0.2.9:5353", []string{"192.0.2.1"}, "192.0.2.9:5353"},
		{"the operator's choice without a port", "192.0.2.9", nil, "192.0.2.9:53"},
		{"the host's first", "", []string{"192.0.2.1", "192.0.2.2"}, "192.0.2.1:53"},
		{"the host's first of IPv4", "", []string{"2001:db8::1", "192.0.2.2"}, "192.0.2.2:53"},
		{"the engine, when the host's is on the host", "", []string{"127.0.0.53"}, "127.0.0.11:53"},
		{"the engine, when the host has none", "", nil, "127.0.0.11:53"},
	} {
		b := &Backend{opts: Options{DNS: c.option}}
		var h boot.Host
		for _, s := range c.host {
			h.Servers = append(h.Servers, netip.MustParseAddr(s))
		}
		if got := b.upstream(h).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRemainsAreSetsWithoutASandbox(t *testing.T) {
	t.Parallel()
	labels := func(role, set string) map[string]string {
		return map[string]string{driver.LabelManaged: "true", driver.LabelRole: role, labelSet: set, driver.LabelCreated: "1000", driver.LabelMaxExpires: "2000",
			driver.LabelInstance: "i-" + set, driver.LabelOwner: "o", driver.LabelOwn: "", "image": "adds"}
	}
	gate := func(set string) container.Summary {
		return container.Summary{ID: "gateway " + set, Names: []string{"/g"}, Command: boot.Binary + " serve", Labels: labels(driver.RoleGateway, set)}
	}
	box := func(set string) container.Summary {
		return container.Summary{ID: "sandbox " + set, Command: guest.Binary, Labels: labels(driver.RoleSandbox, set),
			Mounts: []container.MountPoint{{Destination: guest.Dir, Name: volumePrefix + "x"}}}
	}
	net := func(set, name string) network.Summary {
		return network.Summary{Network: network.Network{ID: name + " " + set, Name: name, Labels: labels(driver.RoleNetwork, set)}}
	}
	odd := gate("odd")
	odd.Command = "/bin/sh"
	got := remains([]container.Summary{gate("live"), box("live"), gate("left"), odd},
		[]network.Summary{net("live", "inside"), net("left", "inside"), net("left", "uplink"), net("early", "inside")})
	var ids []string
	for _, r := range got {
		ids = append(ids, r.ID)
		if r.State != driver.StateCreated || r.Created.Unix() != 1000 || r.Deadline.Unix() != 2000 || r.Facts.Instance != "i-"+r.set || r.native[driver.LabelRole] != driver.RoleSandbox || len(r.Labels) != 0 {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"gateway left", "inside early"}; !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}

func TestNetworksThatAreLeftAreListedUnderOneIDAndFoundByEach(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	var ids []string
	for i := range 6 {
		id := strings.Repeat(strconv.Itoa(i+1), 64)
		ids = append(ids, id)
		f.networks = append(f.networks, network.Summary{Network: network.Network{ID: id, Name: "n", Labels: map[string]string{driver.LabelManaged: "true", driver.LabelRole: driver.RoleNetwork,
			labelSet: []string{"even", "odd"}[i%2], driver.LabelCreated: "1000", driver.LabelMaxExpires: "2000", driver.LabelOwner: "o", driver.LabelOwn: ""}}})
	}
	for range 20 {
		var got []string
		for st, err := range b.List(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, st.ID)
		}
		slices.Sort(got)
		if !slices.Equal(got, ids[:2]) {
			t.Fatalf("listed %q", got)
		}
		for i, id := range ids {
			sb, err := b.Attach(t.Context(), id)
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if st := sb.Status(); st.ID != ids[i%2] {
				t.Fatalf("%s is of %s", id, st.ID)
			}
		}
	}
	if _, err := b.Attach(t.Context(), strings.Repeat("a", 64)); driver.CodeOf(err) != driver.CodeNotFound {
		t.Errorf("another network: %v", err)
	}
}
