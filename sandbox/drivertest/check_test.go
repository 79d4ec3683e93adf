package drivertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

func TestChecksAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range drivertest.Checks() {
		if seen[c.Name] || !strings.Contains(c.Name, ": ") || c.Func == nil {
			t.Errorf("%q", c.Name)
		}
		seen[c.Name] = true
	}
	if len(seen) < 120 {
		t.Errorf("there are %d checks", len(seen))
	}
}

func TestEveryCapabilityHasAProofAndARefusal(t *testing.T) {
	for _, want := range driver.Capabilities() {
		kinds := map[drivertest.Kind]bool{}
		for _, c := range drivertest.Checks() {
			if c.Capability == want {
				kinds[c.Kind] = true
			}
		}
		if !kinds[drivertest.Proof] || !kinds[drivertest.Refusal] {
			t.Errorf("%s: proof %v, refusal %v", want, kinds[drivertest.Proof], kinds[drivertest.Refusal])
		}
	}
}

func TestTheShellSaysEveryProbe(t *testing.T) {
	for _, p := range drivertest.Probes() {
		if len(drivertest.Shell()[p]) == 0 {
			t.Errorf("no word for %q", p)
		}
	}
}

func TestAChecksKindSaysWhomItAsks(t *testing.T) {
	can := driver.Info{Capabilities: []driver.Capability{driver.CanFiles}}
	for _, c := range []struct {
		check       drivertest.Check
		can, cannot bool
	}{
		{drivertest.Check{}, true, true},
		{drivertest.Check{Capability: driver.CanFiles}, true, false},
		{drivertest.Check{Capability: driver.CanFiles, Kind: drivertest.Proof}, true, false},
		{drivertest.Check{Capability: driver.CanFiles, Kind: drivertest.Refusal}, false, true},
	} {
		if c.check.Applies(can) != c.can || c.check.Applies(driver.Info{}) != c.cannot {
			t.Errorf("%+v", c.check)
		}
	}
}

// A fake proves nothing of what only a real provider can hold.
func TestChecksOfRealControlsAreMarked(t *testing.T) {
	marked := 0
	for _, c := range drivertest.Checks() {
		family, _, _ := strings.Cut(c.Name, ":")
		real := c.Kind != drivertest.Refusal && slices.Contains([]string{"network", "egress.cidr", "egress.host", "caps", "oom", "privileges", "strict", "multi-tenant"}, family)
		if real && !c.Control {
			t.Errorf("%q is of a real control", c.Name)
		}
		if c.Control {
			marked++
		}
		if c.Control && c.Kind == drivertest.Refusal {
			t.Errorf("%q is a refusal, which needs no control", c.Name)
		}
	}
	t.Logf("%d of %d checks are of real controls", marked, len(drivertest.Checks()))
}

// A harness that lacks everything proves nothing that needs it, and says so.
func TestWhatCannotBeLookedAtIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := memory.NewWorld()
		defer world.Close()
		open := func(context.Context) (driver.Backend, error) { return memory.Open(memory.Options{World: world}), nil }
		b, _ := open(t.Context())
		skipped := map[string]bool{}
		for _, r := range drivertest.Examine(t.Context(), b, drivertest.Harness{Open: open, Programs: drivertest.Direct()}) {
			if r.Verdict == drivertest.Failed {
				t.Errorf("%s: %v", r.Check.Name, r.Err)
			}
			if r.Verdict == drivertest.Skipped {
				skipped[r.Check.Name] = true
			}
		}
		for _, name := range []string{
			"network: nothing is reached and no name resolves unless it is allowed",
			"egress.cidr: a rule opens its range and ports, and nothing else",
			"egress.cidr: a rule opens nothing to the neighbour",
			"egress.host: a rule opens its host and ports, not the raw address",
			"egress.proxy: a rule opens its range and ports, to who uses the proxy",
			"egress.proxy: without rules there is no proxy, whatever the mode",
			"isolation: code on the host's own kernel is called no more than a container",
			"last: nothing is left",
		} {
			if !skipped[name] {
				t.Errorf("not skipped: %s", name)
			}
			delete(skipped, name)
		}
		for name := range skipped {
			t.Errorf("skipped: %s", name)
		}
	})
}

// A canary that does not answer proves nothing about who cannot reach it.
func TestADeadCanaryFailsTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := memory.NewWorld()
		defer world.Close()
		h := drivertest.Harness{
			Open:     func(context.Context) (driver.Backend, error) { return memory.Open(memory.Options{World: world}), nil },
			Programs: drivertest.Direct(),
			Canary:   drivertest.Canary{Addr: "203.0.113.7:8443", Control: func(context.Context) error { return errors.New("no answer") }},
		}
		b, _ := h.Open(t.Context())
		for _, c := range drivertest.Checks() {
			if strings.HasPrefix(c.Name, "network: nothing") {
				if r := drivertest.Judge(t.Context(), b, h, c); r.Verdict != drivertest.Failed {
					t.Errorf("%s, %v", r.Verdict, r.Err)
				}
			}
		}
	})
}

func TestVerdicts(t *testing.T) {
	ok := func(context.Context, driver.Backend, drivertest.Harness) error { return nil }
	b := memory.Open(memory.Options{})
	for _, c := range []struct {
		name  string
		check drivertest.Check
		want  drivertest.Verdict
	}{
		{"what passes is proved", drivertest.Check{Func: ok}, drivertest.Proved},
		{"a control on a fake is simulated", drivertest.Check{Func: ok, Control: true}, drivertest.Simulated},
		{"a refusal is a refusal", drivertest.Check{Func: ok, Kind: drivertest.Refusal}, drivertest.Refused},
		{"an error fails", drivertest.Check{Func: func(context.Context, driver.Backend, drivertest.Harness) error { return errors.New("x") }}, drivertest.Failed},
		{"a skip is no pass", drivertest.Check{Func: func(context.Context, driver.Backend, drivertest.Harness) error { return drivertest.ErrSkipped }}, drivertest.Skipped},
	} {
		if got := drivertest.Judge(t.Context(), b, drivertest.Harness{}, c.check).Verdict; got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	results := []drivertest.Result{{Verdict: drivertest.Proved}, {Verdict: drivertest.Failed}, {Verdict: drivertest.Proved}}
	if got, want := drivertest.Summary(results), "2 proved, 0 refused, 0 simulated, 0 skipped, 1 failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
