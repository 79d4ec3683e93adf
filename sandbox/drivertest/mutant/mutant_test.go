package mutant_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest/mutant"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// TestEveryLieIsFound judges the judge over the memory backend, in a bubble
// whose clock is fake, so that a lie about time costs none.
func TestEveryLieIsFound(t *testing.T) {
	for _, m := range mutant.All() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				world := memory.NewWorld()
				defer world.Close()
				h := harness(world)
				b := memory.Open(memory.Options{World: world})
				if !m.Possible(b, h) {
					t.Fatal("the memory backend cannot tell this lie")
				}
				if err := mutant.Judge(t.Context(), b, h, m); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestTheHonestPass is the control: a wrapper without a lie fails nothing.
func TestTheHonestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := memory.NewWorld()
		defer world.Close()
		if err := mutant.Judge(t.Context(), memory.Open(memory.Options{World: world}), harness(world), mutant.Honest()); err != nil {
			t.Error(err)
		}
	})
}

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
