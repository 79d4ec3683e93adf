package drivertest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// A driver is judged in one call, here outside a test. This one has no canary,
// no Kernel and nothing to look for leftovers with, so that some checks are
// skipped; in a test, Run fails for that unless MaySkip says why.
func ExampleExamine() {
	ctx := context.Background()
	world := memory.NewWorld()
	h := drivertest.Harness{
		Open:     func(context.Context) (driver.Backend, error) { return memory.Open(memory.Options{World: world}), nil },
		Programs: drivertest.Direct(), // the memory backend runs the probes themselves
		Parallel: 64,                  // most of them wait
	}
	b, err := h.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range drivertest.Examine(ctx, b, h) {
		switch {
		case r.Verdict == drivertest.Failed:
			fmt.Println(r.Check.Name, "failed:", r.Err)
		case r.Verdict == drivertest.Skipped:
			fmt.Println(r.Check.Name)
		}
	}
	if err := world.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// network: nothing is reached and no name resolves unless it is allowed
	// egress.cidr: a rule opens its range and ports, and nothing else
	// egress.host: a rule opens its host and ports, not the raw address
	// egress.cidr: a rule opens nothing to the neighbour
	// egress.proxy: a rule opens its range and ports, to who uses the proxy
	// egress.proxy: without rules there is no proxy, whatever the mode
	// isolation: code on the host's own kernel is called no more than a container
	// last: nothing is left
}
