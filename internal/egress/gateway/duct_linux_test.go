package gateway

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipesOpen counts the pipes of this process.
func pipesOpen(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if at, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(at, "pipe:") {
			n++
		}
	}
	return n
}

// A connection that was busy and is silent holds no more than one that never
// was: what carried its bytes is given back. It counts what the whole process
// has open, and so is not run beside others.
func TestASilentConnectionHoldsNoPipe(t *testing.T) {
	const conns = 40
	pipes.mu.Lock()
	for _, p := range pipes.kept { // by a run before this one
		pipes.made--
		p.close()
	}
	pipes.kept = nil
	pipes.mu.Unlock()
	before := pipesOpen(t)
	type way struct{ from, to net.Conn }
	var ways []way
	var all sync.WaitGroup
	defer all.Wait()
	for range conns {
		from, in := pairOf(t)
		out, to := pairOf(t)
		ways = append(ways, way{from, to})
		all.Go(func() { _ = pour(out, in) })
		defer from.Close()
	}
	most := 0
	block := bytes.Repeat([]byte("0123456789abcdef"), bulk/8)
	for range 3 { // busy, silent, and busy again
		for _, w := range ways {
			all.Go(func() { _, _ = w.from.Write(block) })
			got := make([]byte, len(block))
			// Half of it: what carries the rest is in use.
			if _, err := io.ReadFull(w.to, got[:len(got)/2]); err != nil {
				t.Fatal(err)
			}
			most = max(most, pipesOpen(t)-before)
			if _, err := io.ReadFull(w.to, got[len(got)/2:]); err != nil || !bytes.Equal(got, block) {
				t.Fatalf("it is not what was sent, %v", err)
			}
		}
		for until := time.Now().Add(DialTimeout); pipesOpen(t)-before > 2*keptPipes; {
			if time.Now().After(until) {
				t.Fatalf("%d silent connections hold %d ends of pipes", conns, pipesOpen(t)-before)
			}
		}
	}
	if most == 0 {
		t.Error("no pipe was ever used")
	}
}

func TestPipesAreFew(t *testing.T) {
	t.Parallel()
	var s pipeStore
	var lent []*duct
	for range MaxPipes {
		p := s.get()
		if p == nil {
			t.Fatal("there is none")
		}
		lent = append(lent, p)
	}
	if s.get() != nil {
		t.Error("there is one more")
	}
	lent[0].left = 1 // what is in it is somebody's
	for _, p := range lent {
		s.put(p)
	}
	if s.made != keptPipes || len(s.kept) != keptPipes {
		t.Errorf("%d of %d are kept", len(s.kept), s.made)
	}
	for _, p := range s.kept {
		if p == lent[0] || p.left != 0 {
			t.Error("one that is not empty is kept")
		}
		p.close()
	}
}

// Whoever does not take what it is sent cannot be told of another's bytes.
func TestAPipeThatIsNotEmptyIsNotLentAgain(t *testing.T) {
	t.Parallel()
	from, in := pairOf(t)
	out, to := pairOf(t)
	done := make(chan error, 1)
	go func() { done <- pour(out, in) }()
	var wrote sync.WaitGroup
	defer wrote.Wait()
	wrote.Go(func() { flood(from) })
	if _, err := io.CopyN(io.Discard, to, 2*bulk); err != nil {
		t.Fatal(err)
	}
	_ = to.Close() // with a pipe half empty
	if err := <-done; err == nil {
		t.Error("it ends as if all had been taken")
	}
	_ = in.Close()
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	for _, p := range pipes.kept {
		if p.left != 0 {
			t.Errorf("%d bytes of somebody are kept", p.left)
		}
	}
}
