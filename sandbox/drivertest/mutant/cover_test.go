package mutant_test

import (
	"slices"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest/mutant"
)

// unlied are the checks that no mutant fails, and why none can.
var unlied = map[string]string{
	"files: many are written and read at once, each its own": "what two uploads do to each other at once comes out otherwise each time, so no mutant fails it every time",
}

// TestEveryCheckCatchesALie: a check that nothing can fail proves nothing.
func TestEveryCheckCatchesALie(t *testing.T) {
	caught := map[string]bool{}
	for _, m := range mutant.All() {
		for _, name := range m.Fails {
			caught[name] = true
		}
	}
	known := map[string]bool{}
	for _, c := range drivertest.Checks() {
		known[c.Name] = true
		why, excused := unlied[c.Name]
		switch {
		case !caught[c.Name] && !excused:
			t.Errorf("no mutant fails %q", c.Name)
		case caught[c.Name] && excused:
			t.Errorf("%q needs no excuse (%s)", c.Name, why)
		}
	}
	for name := range unlied {
		if !known[name] {
			t.Errorf("there is no check %q", name)
		}
	}
	t.Logf("%d checks, %d mutants", len(drivertest.Checks()), len(mutant.All()))
}

func TestMutantsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutant.All() {
		if m.Name == "" || seen[m.Name] || len(m.Fails) == 0 {
			t.Errorf("%q fails %d checks", m.Name, len(m.Fails))
		}
		seen[m.Name] = true
		if sorted := slices.Sorted(slices.Values(m.Fails)); len(slices.Compact(sorted)) != len(m.Fails) {
			t.Errorf("%q names a check twice", m.Name)
		}
	}
}
