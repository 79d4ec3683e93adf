package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Kind says of which backends a check asks something.
type Kind uint8

const (
	Promise Kind = iota // of every backend
	Proof               // of those that declare the capability
	Refusal             // of those that do not
)

// Check is one thing that the suite asks of a backend.
type Check struct {
	Name       string // a sentence: "exec: arguments arrive as they were given (M45, M98)"
	Capability driver.Capability
	Kind       Kind
	Control    bool // it measures a real control, which a fake can only simulate
	Func       func(ctx context.Context, b driver.Backend, h Harness) error
}

type checkFunc = func(ctx context.Context, b driver.Backend, h Harness) error

// Applies reports whether the check asks something of such a backend.
func (c Check) Applies(info driver.Info) bool {
	if c.Kind == Refusal {
		return !info.Can(c.Capability)
	}
	return c.Capability == "" || info.Can(c.Capability)
}

// Checks lists every check, in the order in which they run: what is left
// over is asked last.
func Checks() []Check {
	return slices.Concat(lifecycle, ending, cancellation, exec, trees, streams, pipes, environment, variables, files, places, archives,
		network, proxies, caps, strict, labels, finding, joining, extending, abilities, runs, code, records, plans, honesty, last)
}

// ErrSkipped is the error of a check that lacks what it needs.
var ErrSkipped = errors.New("skipped")

func skip(why string) error { return fmt.Errorf("%w: %s", ErrSkipped, why) }

// Verdict is how a check came out.
type Verdict string

const (
	Proved    Verdict = "proved"
	Refused   Verdict = "refused"
	Simulated Verdict = "simulated"
	Skipped   Verdict = "skipped"
	Failed    Verdict = "failed"
)

// Result is one check's verdict on one backend.
type Result struct {
	Check   Check
	Verdict Verdict
	Err     error // why it failed or was skipped
	Took    time.Duration
}

// limit bounds one check; none needs a quarter of it on a healthy backend.
const limit = 2 * time.Minute

// Judge runs one check.
func Judge(ctx context.Context, b driver.Backend, h Harness, c Check) Result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	r := Result{Check: c, Err: c.Func(ctx, b, h)}
	r.Took = time.Since(begun)
	switch {
	case errors.Is(r.Err, ErrSkipped):
		r.Verdict = Skipped
	case r.Err != nil:
		r.Verdict = Failed
	case c.Kind == Refusal:
		r.Verdict = Refused
	case c.Control && b.Info().Simulated:
		r.Verdict = Simulated
	default:
		r.Verdict = Proved
	}
	return r
}

// Examine runs every check that applies to the backend, h.Parallel at a time,
// and at the end, alone, the one that asks what is left. Results are in the
// order of [Checks].
func Examine(ctx context.Context, b driver.Backend, h Harness) []Result {
	checks := slices.DeleteFunc(Checks(), func(c Check) bool { return !c.Applies(b.Info()) })
	out := make([]Result, len(checks))
	first := len(checks) - len(last)
	turns := make(chan struct{}, max(h.Parallel, 1))
	var wg sync.WaitGroup
	for i, c := range checks[:first] {
		turns <- struct{}{}
		wg.Go(func() {
			out[i] = Judge(ctx, b, h, c)
			<-turns
		})
	}
	wg.Wait()
	for i, c := range checks[first:] {
		out[first+i] = Judge(ctx, b, h, c)
	}
	return out
}

// Summary counts verdicts in one line.
func Summary(results []Result) string {
	n := map[Verdict]int{}
	for _, r := range results {
		n[r.Verdict]++
	}
	s := fmt.Sprintf("%d proved, %d refused, %d simulated, %d skipped", n[Proved], n[Refused], n[Simulated], n[Skipped])
	if n[Failed] > 0 {
		s += fmt.Sprintf(", %d failed", n[Failed])
	}
	return s
}
