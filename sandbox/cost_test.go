package sandbox_test

import (
	"runtime"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// heap is what is reachable.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// An idle handle costs no more than what is written here, and nothing once it
// is closed. It is not parallel: others' memory would be counted too.
func TestAnIdleSandboxCostsLittle(t *testing.T) {
	const many, most = 1000, 4 << 10
	world := memory.NewWorld()
	defer func() { _ = world.Close() }()
	rt := sandbox.New(memory.Open(memory.Options{World: world}), unguarded)
	make1 := func() *sandbox.Sandbox {
		sb, err := rt.Create(t.Context(), sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}}); err != nil {
			t.Fatal(err)
		}
		return sb
	}
	if err := make1().Close(); err != nil { // what is made once
		t.Fatal(err)
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	all := make([]*sandbox.Sandbox, 0, many)
	for range many {
		all = append(all, make1())
	}
	each := (heap() - before) / many
	t.Logf("%d bytes and %.3f goroutines each", each, float64(runtime.NumGoroutine()-goroutines)/many)
	if each > most {
		t.Errorf("an idle sandbox holds %d bytes, want %d at most", each, most)
	}
	if n := runtime.NumGoroutine() - goroutines; n > many {
		t.Errorf("%d idle sandboxes have %d goroutines", many, n)
	}
	for _, sb := range all {
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := runtime.NumGoroutine() - goroutines; n > 0 {
		t.Errorf("%d goroutines are left", n)
	}
	runtime.KeepAlive(all)
}

// BenchmarkCreate holds 1,000 sandboxes at a time.
func BenchmarkCreate(b *testing.B) {
	world := memory.NewWorld()
	defer func() { _ = world.Close() }()
	rt := sandbox.New(memory.Open(memory.Options{World: world}), unguarded)
	var open []*sandbox.Sandbox
	closeAll := func() {
		for _, sb := range open {
			if err := sb.Close(); err != nil {
				b.Fatal(err)
			}
		}
		open = open[:0]
	}
	for b.Loop() {
		sb, err := rt.Create(b.Context(), sandbox.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		if open = append(open, sb); len(open) == 1000 {
			closeAll()
		}
	}
	closeAll()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}

// BenchmarkRun is one program in a sandbox that is there: what the runtime
// itself adds to a backend.
func BenchmarkRun(b *testing.B) {
	rt := sandbox.New(memory.Open(memory.Options{World: memory.NewWorld()}), unguarded)
	sb, err := rt.Create(b.Context(), sandbox.Spec{Lifetime: 24 * 3600e9})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := sb.Run(b.Context(), sandbox.Cmd{Args: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := sb.Close(); err != nil {
		b.Fatal(err)
	}
}
