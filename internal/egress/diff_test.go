package egress_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func words(rules []driver.Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return out
}

func TestDiff(t *testing.T) {
	t.Parallel()
	list := func(w ...string) []string { return w }
	for _, c := range []struct {
		name     string
		from, to []string
		added    []string
		removed  []string
	}{
		{name: "the same in another spelling and order", from: list("a.example", "10.0.0.5/8"), to: list("10.0.0.0/8", "A.EXAMPLE.", "a.example:443")},
		{name: "from nothing", to: list("a.example"), added: list("a.example:80,443")},
		{name: "to nothing", from: list("a.example"), removed: list("a.example:80,443")},
		{name: "a port comes", from: list("a.example:443"), to: list("a.example"), added: list("a.example:80")},
		{name: "a port goes and another comes", from: list("a.example:443"), to: list("a.example:8443"), added: list("a.example:8443"), removed: list("a.example:443")},
		{name: "a target goes and another comes", from: list("a.example", "b.example"), to: list("b.example", "10.0.0.0/8:22"), added: list("10.0.0.0/8:22"), removed: list("a.example:80,443")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := egress.Diff(rules(t, c.from...), rules(t, c.to...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{c.added, c.removed}, [][]string{words(got.Added), words(got.Removed)}); diff != "" {
				t.Error(diff)
			}
			if got.Empty() != (c.added == nil && c.removed == nil) {
				t.Errorf("Empty() = %v", got.Empty())
			}
		})
	}
	bad := []driver.Rule{{Host: "*"}}
	for _, pair := range [][2][]driver.Rule{{bad, nil}, {nil, bad}} {
		if _, err := egress.Diff(pair[0], pair[1]); err == nil {
			t.Errorf("Diff(%v) succeeds", pair)
		}
	}
}

// What goes, taken away, and what comes, added, make one set of the other; and
// nothing does both.
func TestDiffIsTheLeastThatTurnsOneIntoTheOther(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	pick := func() []driver.Rule {
		var out []driver.Rule
		for range rng.IntN(6) {
			out = append(out, driver.Rule{Host: string(rune('a'+rng.IntN(3))) + ".example", Ports: []uint16{uint16(1 + rng.IntN(4))}})
		}
		return out
	}
	key := func(all []driver.Rule) map[string]bool {
		out := map[string]bool{}
		for _, r := range all {
			for _, p := range r.Ports {
				out[driver.Rule{Host: r.Host, Ports: []uint16{p}}.String()] = true
			}
		}
		return out
	}
	for range 2000 {
		from, to := pick(), pick()
		c, err := egress.Diff(from, to)
		if err != nil {
			t.Fatal(err)
		}
		set, removed, added := key(from), key(c.Removed), key(c.Added)
		for k := range removed {
			if !set[k] || added[k] {
				t.Fatalf("%v to %v: %v", from, to, c)
			}
			delete(set, k)
		}
		for k := range added {
			if set[k] {
				t.Fatalf("%v to %v: %v", from, to, c)
			}
			set[k] = true
		}
		if diff := cmp.Diff(key(to), set); diff != "" {
			t.Fatal(diff)
		}
		if back, err := egress.Diff(to, from); err != nil || !cmp.Equal(back, egress.Change{Added: c.Removed, Removed: c.Added}, cmpopts.EquateComparable(netip.Prefix{})) {
			t.Fatalf("not symmetric: %v, %v, %v", c, back, err)
		}
	}
}
