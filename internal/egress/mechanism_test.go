package egress_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestMechanisms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rule string
		mode       driver.Mode
		by         string
		limit      string // in the limits
		field      string // of the refusal, "" = none
		fix        string
	}{
		{name: "a host in transparent mode is no boundary against fronting (M26)", rule: "example.com", by: egress.ByName, limit: "domain fronting"},
		{name: "a wildcard's zone can be sent data", rule: "*.example.com", by: egress.ByName, limit: "whoever runs the zone"},
		{name: "a range in transparent mode", rule: "203.0.113.0/24:22", by: egress.ByIPSet, limit: "TCP only"},
		{name: "a host in proxy mode", rule: "example.com:8443", mode: driver.Proxy, by: egress.ByProxy, limit: "know no proxy"},
		{name: "a range in proxy mode", rule: "203.0.113.0/24:22", mode: driver.Proxy, by: egress.ByProxy, limit: "TCP only"},
		{name: "an IPv6 range in proxy mode", rule: "2001:db8::/32", mode: driver.Proxy, by: egress.ByProxy},
		{name: "an IPv6 range in transparent mode", rule: "2001:db8::/32", field: "network.egress[1].cidr", fix: `"proxy"`},
		{name: "a host on a port that names none", rule: "git.example.com:22", field: "network.egress[1].ports", fix: "remove the rule for git.example.com; only a rule for a CIDR"},
		{name: "a host on a port that names none, by proxy", rule: "db.example.com:5432", mode: driver.Proxy, field: "network.egress[1].ports", fix: "remove the rule for db.example.com; only a rule for a CIDR"},
		{name: "one of several ports of a host names none", rule: "git.example.com:22,443", field: "network.egress[1].ports", fix: "take port 22 out of the rule for git.example.com; only a rule for a CIDR can have port 22, if the policy allows it"},
		{name: "a host on a port nobody knows", rule: "example.com:12345", by: egress.ByName},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := driver.Network{Mode: c.mode, Egress: append(rules(t, "198.51.100.0/24:443"), rules(t, c.rule)...)}
			for i := range n.Egress {
				one, err := driver.Canonical(n.Egress[i : i+1])
				if err != nil {
					t.Fatal(err)
				}
				n.Egress[i] = one[0]
			}
			got, err := egress.Mechanisms(n)
			if c.field != "" {
				var e *driver.Error
				if !errors.As(err, &e) || e.Code != driver.CodeUnsupported || e.Field != c.field || !strings.Contains(e.Hint, c.fix) || got != nil {
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || len(got) != 2 || got[1].By != c.by || got[1].Name != n.Egress[1].String() || !strings.Contains(got[1].Limits, c.limit) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestMechanismsNameEveryRuleThatTheyRefuse(t *testing.T) {
	t.Parallel()
	all, err := driver.Canonical(rules(t, "2001:db8::/32", "a.example:22", "b.example:443", "c.example:25"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = egress.Mechanisms(driver.Network{Egress: all})
	if got := driver.Problems(err); len(got) != 3 {
		t.Errorf("got %v", err)
	}
}

func TestPortsOfTheWebSpeak(t *testing.T) {
	t.Parallel()
	for _, p := range []uint16{80, 443, 3000, 5000, 8000, 8080, 8443, 8888} {
		if slices.Contains(egress.Speechless(), p) {
			t.Errorf("port %d is refused for hosts", p)
		}
	}
	if !slices.IsSorted(egress.Speechless()) || len(egress.Speechless()) == 0 {
		t.Error("not in order")
	}
}
