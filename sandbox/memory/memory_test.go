package memory_test

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

func order(token string, rules ...driver.Rule) driver.Spec {
	canonical, err := driver.Canonical(rules)
	if err != nil {
		panic(err)
	}
	return driver.Spec{Token: token, Facts: driver.Facts{Instance: token}, Image: "memory:probe", Lifetime: time.Minute,
		Resources: driver.Resources{CPUMillis: 1000, MemoryMiB: 64, DiskMiB: 16, PIDs: 64}, Network: driver.Network{Egress: canonical}}
}

// run gives a program's output and exit code.
func run(t *testing.T, s driver.Sandbox, args ...string) (string, int) {
	t.Helper()
	p, err := s.Start(t.Context(), driver.Cmd{Args: args, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for {
		c, err := p.Recv(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(c.Data)
	}
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), exit.Code
}

// world runs f in a bubble, with a world that ends with it.
func world(t *testing.T, f func(t *testing.T, w *memory.World, b driver.Backend)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := memory.NewWorld()
		f(t, w, memory.Open(memory.Options{World: w}))
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if left := w.Leftovers(); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestAnAllowedNameDoesNotOpenAProtectedAddress(t *testing.T) {
	world(t, func(t *testing.T, w *memory.World, b driver.Backend) {
		t.Helper()
		w.Serve("rebind.example", netip.MustParseAddrPort("169.254.169.254:80"))
		w.Serve("inside.example", netip.MustParseAddrPort("10.0.0.7:80"))
		for _, c := range []struct {
			name  string
			rules []driver.Rule
			addr  string
			want  int
		}{
			{"a name that resolves to metadata", []driver.Rule{{Host: "rebind.example"}}, "rebind.example:80", 7},
			{"a name that resolves to a private address", []driver.Rule{{Host: "inside.example"}}, "inside.example:80", 7},
			{"all of IPv4 opens no private range", []driver.Rule{{Prefix: netip.MustParsePrefix("0.0.0.0/0")}}, "10.0.0.7:80", 7},
			{"the private range itself does", []driver.Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}, "10.0.0.7:80", 0},
			{"an IPv4-mapped way to the same", []driver.Rule{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}, "[::ffff:10.0.0.7]:80", 0},
			{"link-local opens no metadata", []driver.Rule{{Prefix: netip.MustParsePrefix("169.254.0.0/16")}}, "169.254.169.254:80", 7},
			{"the metadata address itself does", []driver.Rule{{Prefix: netip.MustParsePrefix("169.254.169.254/32")}}, "169.254.169.254:80", 0},
		} {
			s, err := b.Create(t.Context(), order("t", c.rules...))
			if err != nil {
				t.Fatal(err)
			}
			if out, code := run(t, s, "fetch", c.addr); code != c.want {
				t.Errorf("%s: exit %d, %q", c.name, code, out)
			}
			if err := s.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAFrozenSandboxIsLeftToTheSchedule(t *testing.T) {
	world(t, func(t *testing.T, w *memory.World, b driver.Backend) {
		t.Helper()
		spec := order("frozen")
		spec.Detached, spec.Facts.Reaper = true, "sweeper"
		s, err := b.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if !w.Freeze(s.Status().ID) || w.Freeze("no such") {
			t.Fatal("freeze")
		}
		time.Sleep(2 * spec.Lifetime)
		again, err := b.Attach(t.Context(), s.Status().ID)
		if err != nil {
			t.Fatalf("a frozen sandbox cannot be attached: %v", err)
		}
		if again.Status().State != driver.StatePaused {
			t.Errorf("it is %s", again.Status().State)
		}
		if _, err := again.Start(t.Context(), driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); !errors.Is(err, driver.CodeUnavailable) {
			t.Errorf("it answers: %v", err)
		}
		scheduler, ok := driver.As[driver.Scheduler](b)
		if !ok {
			t.Fatal("no scheduler")
		}
		if _, err := scheduler.PutSchedule(t.Context(), driver.Schedule{Name: "sweeper", Interval: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if _, err := b.Attach(t.Context(), s.Status().ID); !errors.Is(err, driver.CodeGone) {
			t.Errorf("swept, it is %v", err)
		}
	})
}

func TestAFloorIsRefused(t *testing.T) {
	spec := order("t")
	spec.Isolation = driver.Container
	if _, err := memory.Open(memory.Options{}).Check(spec); !errors.Is(err, driver.CodeUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestATokenMakesOneSandbox(t *testing.T) {
	world(t, func(t *testing.T, _ *memory.World, b driver.Backend) {
		t.Helper()
		if _, err := b.Create(t.Context(), order("same")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Create(t.Context(), order("same")); !errors.Is(err, driver.CodeConflict) {
			t.Errorf("again: %v", err)
		}
	})
}

func TestScripts(t *testing.T) {
	world(t, func(t *testing.T, _ *memory.World, b driver.Backend) {
		t.Helper()
		s, err := b.Create(t.Context(), order("t"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			args []string
			out  string
			code int
		}{
			{"lines of the vocabulary", []string{"sh", "-c", "echo a  b\n# a remark\n\necho c"}, "a b\nc\n", 0},
			{"a failure that is allowed for", []string{"sh", "-c", "exit 3 || true\necho on"}, "on\n", 0},
			{"the first failure ends it", []string{"sh", "-c", "exit 3\necho never"}, "", 3},
			{"print", []string{"python3", "-c", `print("a \"b\"")`}, "a \"b\"\n", 0},
			{"anything else is said to be nothing", []string{"python3", "-c", "import os"}, "python3: only print(\"text\") is simulated\n", 1},
			{"a missing file", []string{"sh", "/work/none"}, "sh: cannot read /work/none\n", 2},
			{"an unknown program", []string{"bash", "-c", "true"}, "bash: no such program; the memory backend runs a fixed vocabulary\n", 127},
		} {
			if out, code := run(t, s, c.args...); out != c.out || code != c.code {
				t.Errorf("%s: %q, %d", c.name, out, code)
			}
		}
	})
}

func TestACloseOfTheWorldEndsAll(t *testing.T) {
	world(t, func(t *testing.T, w *memory.World, b driver.Backend) {
		t.Helper()
		s, err := b.Create(t.Context(), order("t"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Start(t.Context(), driver.Cmd{Args: []string{"spawn-daemon", "/tmp/beat"}, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(t.Context()); !errors.Is(err, driver.CodeGone) {
			t.Errorf("wait: %v", err)
		}
		if _, err := b.Create(t.Context(), order("u")); !errors.Is(err, driver.CodeUnavailable) {
			t.Errorf("create: %v", err)
		}
	})
}

func BenchmarkMemory(b *testing.B) { drivertest.Bench(b, harness(memory.NewWorld())) }
