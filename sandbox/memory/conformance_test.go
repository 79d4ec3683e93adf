package memory_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// harness judges the backends of one world.
func harness(world *memory.World) drivertest.Harness {
	canary := netip.MustParseAddrPort("203.0.113.7:8443")
	world.Serve("canary.example", canary)
	control := func(context.Context) error {
		if !world.Answers(canary) {
			return errors.New("no answer")
		}
		return nil
	}
	return drivertest.Harness{
		Open:      func(context.Context) (driver.Backend, error) { return memory.Open(memory.Options{World: world}), nil },
		Programs:  drivertest.Direct(),
		Canary:    drivertest.Canary{Addr: canary.String(), Host: "canary.example:8443", Control: control},
		Near:      drivertest.Canary{Addr: canary.String(), Control: control},
		Leftovers: func(context.Context) ([]string, error) { return world.Leftovers(), nil },
		Kernel:    func(context.Context) (string, error) { return memory.Kernel(), nil },
	}
}

// TestConformance runs in real time, as the suite does on a real backend.
func TestConformance(t *testing.T) {
	world := memory.NewWorld()
	drivertest.Run(t, harness(world))
	if err := world.Close(); err != nil {
		t.Error(err)
	}
}

// TestConformanceInABubble runs the same with a fake clock; the bubble does
// not end before the last goroutine.
func TestConformanceInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := memory.NewWorld()
		for _, r := range drivertest.Examine(t.Context(), memory.Open(memory.Options{World: world}), harness(world)) {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Check.Name, r.Err)
			}
		}
	})
}
