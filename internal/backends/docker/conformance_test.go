//go:build dockertest

package docker

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest/mutant"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, harness(t, ""))
}

// TestConformanceOnGVisor stands before the same suite: what a runtime cannot
// keep is refused, and nothing is promised less.
func TestConformanceOnGVisor(t *testing.T) {
	drivertest.Run(t, harness(t, "runsc"))
}

// TestMutants lets the suite loose on this very backend, telling lies. Each
// must fail exactly its own checks: so the suite sees what it says it sees, on
// a real engine. All the others, and the wrapping without a lie, stand before
// it on the memory driver (package mutant): each takes most of a minute here.
func TestMutants(t *testing.T) {
	lies := []string{
		"it leaks on kill",
		"it kills no child",
		"it calls every sandbox a virtual machine",
		"it ignores the caps",
		"a start that is cut off runs on",
		"it hands secrets over on the command line",
		"its proxy lets everybody through",
	}
	h := harness(t, "")
	h.Parallel = 4 // each mutant stands before the whole suite
	t.Logf("%d of %d mutants before %d checks", len(lies), len(mutant.All()), len(drivertest.Checks()))
	for _, m := range mutant.All() {
		at := slices.Index(lies, m.Name)
		if at < 0 {
			continue
		}
		lies = slices.Delete(lies, at, at+1)
		t.Run(m.Name, func(t *testing.T) {
			b, err := h.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := mutant.Judge(t.Context(), b, h, m); err != nil {
				t.Error(err)
			}
			// What a lie left behind ends here, with its owner too.
			for st, err := range b.List(t.Context(), map[string]string{driver.LabelOwner: h.Owner}) {
				if err != nil {
					t.Fatal(err)
				}
				s, err := b.Attach(t.Context(), st.ID)
				if err == nil {
					err = s.Kill(t.Context())
				}
				if err != nil && !errors.Is(err, driver.CodeNotFound) {
					t.Error(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if len(lies) > 0 {
		t.Errorf("there are no mutants of the names %q", lies)
	}
}

func BenchmarkDocker(b *testing.B) {
	drivertest.Bench(b, harness(b, ""))
}

// harness judges this package on the real engine. Its canary is on the network
// that gateways have for an uplink, and its control beside it.
func harness(t testing.TB, runtime string) drivertest.Harness {
	t.Helper()
	b, image := engineOn(t, runtime)
	if t, ok := t.(*testing.T); ok { // benchmarks put no schedules
		withKeeper(t, b)
	}
	cli := raw(t, b)
	owner := "conformance-" + realSpec(t, image).Token

	w := newInternet(t, b, image)
	b = w.backend(t, b)
	addr := net.JoinHostPort(worldAllowed, "8080")
	control := bystander(t, cli, image, w.name, "import time\nwhile True: time.sleep(60)")
	eventually(t, 60*time.Second, "the canary answers", func() bool { return answers(t.Context(), cli, control, addr) == nil })
	programs := drivertest.Shell()
	programs[drivertest.Fetch] = spokenFetch

	return drivertest.Harness{
		Open:     func(ctx context.Context) (driver.Backend, error) { return Open(ctx, b.opts) },
		Owner:    owner,
		Image:    image,
		Programs: programs,
		Canary:   drivertest.Canary{Addr: addr, Host: "allowed.example:8080", Control: func(ctx context.Context) error { return answers(ctx, cli, control, addr) }},
		Leftovers: func(ctx context.Context) ([]string, error) {
			return leftovers(ctx, cli, owner)
		},
		Traces: func(ctx context.Context, id string) ([]byte, error) { return traces(ctx, cli, image, id) },
		// The tests' engine is on the tests' host.
		Kernel: func(context.Context) (string, error) {
			id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
			return string(id), err
		},
	}
}
