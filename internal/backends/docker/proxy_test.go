package docker

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestCheckInModeProxy(t *testing.T) {
	t.Parallel()
	host := driver.Rule{Host: "example.com", Ports: []uint16{443}}
	for _, c := range []struct {
		name     string
		network  driver.Network
		detached bool
		by       string
		rules    []string // by which each is enforced
		field    string   // of the refusal
	}{
		{name: "no rules need no proxy", network: driver.Network{Mode: driver.Proxy}, by: closedNetwork},
		{name: "a host", network: driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{host}}, by: proxyNetwork, rules: []string{"proxy"}},
		{name: "IPv6, which mode transparent has none of", network: driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Prefix: netip.MustParsePrefix("2001:db8::/32"), Ports: []uint16{22}}}}, by: proxyNetwork, rules: []string{"proxy"}},
		{name: "to learn, without rules", network: driver.Network{Mode: driver.Proxy, Learn: true}, by: proxyNetwork},
		{name: "a host on a port that names none", network: driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Host: "example.com", Ports: []uint16{22}}}}, field: "network.egress[0].ports"},
		{name: "detached, which has no owner", network: driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{host}}, detached: true, field: "network.mode"},
		{name: "detached, to learn", network: driver.Network{Mode: driver.Proxy, Learn: true}, detached: true, field: "network.mode"},
		{name: "detached, with nothing to run", network: driver.Network{Mode: driver.Proxy}, detached: true, by: closedNetwork},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(Options{}, environment{})
			spec := testSpec("box")
			spec.Network, spec.Detached = c.network, c.detached
			plan, err := b.Check(spec)
			if c.field != "" {
				for _, p := range driver.Problems(err) {
					if p.Code == driver.CodeUnsupported && p.Field == c.field && p.Hint != "" {
						return
					}
				}
				t.Fatalf("it is not refused at %s with a fix: %v", c.field, err)
			}
			var rules []string
			for _, m := range plan.Rules {
				rules = append(rules, m.By)
			}
			if err != nil || plan.Network != c.by || !cmp.Equal(rules, c.rules) {
				t.Errorf("%q, rules by %q, %v", plan.Network, rules, err)
			}
		})
	}
}

func TestTheProxysVariablesAreSetWhereThereIsOneAndReservedEverywhere(t *testing.T) {
	t.Parallel()
	o := order{spec: testSpec("box")}
	o.spec.Env = map[string]string{"A": "b"}
	if diff := cmp.Diff(map[string]string{"A": "b"}, o.env()); diff != "" {
		t.Error(diff)
	}
	o.outlet = &outlet.Outlet{}
	const url = "http://127.0.0.1:3128"
	want := map[string]string{"A": "b", "HTTP_PROXY": url, "HTTPS_PROXY": url, "http_proxy": url, "https_proxy": url,
		"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1"}
	if diff := cmp.Diff(want, o.env()); diff != "" {
		t.Error(diff)
	}
	if len(o.spec.Env) != 1 {
		t.Errorf("the order's own env is now %q", o.spec.Env)
	}
	delete(want, "A")
	for name := range want {
		t.Run("a caller's own "+name+" is refused (M31)", func(t *testing.T) {
			t.Parallel()
			spec := testSpec("box")
			spec.Env = map[string]string{name: "http://evil.example"}
			spec.Network = driver.Network{Mode: driver.Proxy, Learn: true}
			_, err := open(Options{}, environment{}).Check(spec)
			if driver.CodeOf(err) != driver.CodeInvalid || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "reserved") {
				t.Errorf("%v", err)
			}
		})
	}
}

// What only the creator counts is no zero to others, who know of it by a label.
func TestWhatTheProxyRefusedIsUnknownToOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		network driver.Network
		want    string
	}{
		{"no network", driver.Network{}, ""},
		{"mode proxy without a way out", driver.Network{Mode: driver.Proxy}, ""},
		{"mode transparent", driver.Network{Learn: true}, ""},
		{"mode proxy", driver.Network{Mode: driver.Proxy, Learn: true}, "true"},
	} {
		o := order{spec: testSpec("box")}
		o.spec.Network = c.network
		if got := o.labels()[labelProxied]; got != c.want {
			t.Errorf("%s: the label is %q", c.name, got)
		}
	}
	for _, proxied := range []bool{false, true} {
		if d, err := (&sandbox{proxied: proxied}).Denied(t.Context()); err != nil || d.Unknown != proxied {
			t.Errorf("proxied %v: %+v, %v", proxied, d, err)
		}
	}
}

func TestTheEngineItselfIsProtectedWhereItHasAnAddress(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"tcp://203.0.113.9:2376": "203.0.113.9/32", "tcp://[2001:db8::9]:2376": "2001:db8::9/128",
		"tcp://engine.example:2376": "", "unix:///var/run/docker.sock": "",
	} {
		b := open(Options{}, environment{})
		b.endpoint.Store(&endpoint{host: host})
		got := ""
		for _, r := range b.engineRange() {
			got = r.Prefix.String()
		}
		if got != want {
			t.Errorf("%s: %q is protected, want %q", host, got, want)
		}
	}
}
