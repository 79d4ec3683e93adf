package memory

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A World holds the sandboxes and schedules of any number of Backends, as a
// Docker daemon holds those of any number of clients.
type World struct {
	mu        sync.Mutex
	boxes     map[string]*box
	ended     map[string]bool // ids that existed once
	schedules map[string]*schedule
	places    map[netip.AddrPort]bool
	names     map[string]netip.Addr
	closed    bool
}

// NewWorld makes an empty one.
func NewWorld() *World {
	return &World{
		boxes: map[string]*box{}, ended: map[string]bool{}, schedules: map[string]*schedule{},
		places: map[netip.AddrPort]bool{}, names: map[string]netip.Addr{},
	}
}

// named are the worlds that this process shares by name. A name is all that a
// DSN can carry.
var named struct {
	sync.Mutex
	worlds map[string]*World
}

// Named gives the world of that name, the same one to everybody in this
// process.
func Named(name string) *World {
	named.Lock()
	defer named.Unlock()
	w, ok := named.worlds[name]
	if !ok {
		w = NewWorld()
		if named.worlds == nil {
			named.worlds = map[string]*World{}
		}
		named.worlds[name] = w
	}
	return w
}

// Serve makes addr answer, as a server on the network would, and lets name (if
// any) resolve to it. Sandboxes reach it only if their policy says so.
func (w *World) Serve(name string, addr netip.AddrPort) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places[addr] = true
	if name != "" {
		w.names[name] = addr.Addr()
	}
}

// Answers reports whether something serves addr, past every policy.
func (w *World) Answers(addr netip.AddrPort) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[addr]
}

// Kernel is what the "kernel" probe prints: every sandbox of every world runs
// on the same one, this process.
func Kernel() string { return "memory-process" }

// Freeze stops a sandbox's own deadline from firing, as pausing a container
// does; only a kill ends it then. It reports whether the sandbox exists.
func (w *World) Freeze(id string) bool {
	w.mu.Lock()
	b, ok := w.boxes[id]
	w.mu.Unlock()
	if ok {
		b.freeze()
	}
	return ok
}

// Leftovers lists what exists: ids of sandboxes and names of schedules,
// sorted.
func (w *World) Leftovers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for id := range w.boxes {
		out = append(out, "sandbox "+id)
	}
	for name := range w.schedules {
		out = append(out, "schedule "+name)
	}
	slices.Sort(out)
	return out
}

// Running counts the programs that run in all sandboxes, with what they left
// behind.
func (w *World) Running() int {
	n := int64(0)
	for _, b := range w.snapshot() {
		n += b.running.Load()
	}
	return int(n)
}

// Close ends every sandbox and schedule and waits until nothing of them runs.
// Nothing can be made in the world afterwards.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	schedules := slices.Collect(maps.Values(w.schedules))
	clear(w.schedules)
	w.mu.Unlock()
	for _, s := range schedules {
		s.stop()
	}
	for _, b := range w.snapshot() {
		b.end()
	}
	return nil
}

// snapshot lists the sandboxes, oldest first.
func (w *World) snapshot() []*box {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.boxes), func(a, b *box) int {
		if c := a.created.Compare(b.created); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
}

func (w *World) find(id string) (b *box, existed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.boxes[id], w.ended[id]
}

// add makes a sandbox. Its token makes it unique.
func (w *World) add(spec driver.Spec, id string) (*box, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, &driver.Error{Code: driver.CodeUnavailable, Hint: "open another world"}
	}
	for _, other := range w.boxes {
		if other.spec.Token == spec.Token {
			return nil, &driver.Error{Code: driver.CodeConflict, Sandbox: other.id, Field: "token", Hint: "attach to the sandbox that has it, or use a new token"}
		}
	}
	now := time.Now()
	b := &box{world: w, id: id, spec: spec, created: now, deadline: now.Add(spec.Lifetime), state: driver.StateRunning, gone: make(chan struct{}), tree: newTree(spec)}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.timer = time.AfterFunc(spec.Lifetime, b.expire)
	w.boxes[id] = b
	return b, nil
}

func (w *World) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.boxes, id)
	w.ended[id] = true
}
