//go:build dockertest

package docker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// made lists the containers that a test made, past the driver.
func made(t testing.TB, b *Backend) []string {
	t.Helper()
	res, err := raw(t, b).ContainerList(cleanup(t), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "test="+t.Name())})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range res.Items {
		out = append(out, fmt.Sprint(c.Names, c.State))
	}
	return out
}

func TestRealM119CancellingAtAnyMomentLeavesNothing(t *testing.T) {
	b, image := engine(t)
	create(t, b, realSpec(t, image)) // verifies the guest, and is left alone
	before := runtime.NumGoroutine()
	cancelled := 0
	for i := range 24 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i)*12*time.Millisecond, cancel)
		spec := realSpec(t, image)
		spec.Detached = i%2 == 1
		sb, err := b.Create(ctx, spec)
		switch {
		case err == nil:
			if err := sb.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, context.Canceled):
			t.Errorf("cancelled after %d ms: %v", i*12, err)
		default:
			cancelled++
		}
		timer.Stop()
		cancel()
	}
	if cancelled < 3 {
		t.Errorf("only %d were cancelled", cancelled)
	}
	if left := made(t, b); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	eventually(t, 9*time.Second, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+4 })
	t.Logf("%d of 24 were cancelled", cancelled)
}

func TestRealManyAtOnce(t *testing.T) {
	b, image := engine(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			spec := realSpec(t, image)
			spec.Detached = i%2 == 1
			sb, err := b.Create(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			if out, exit := run(t, sb, "echo", fmt.Sprint(i)); strings.TrimSpace(out) != fmt.Sprint(i) || exit.Code != 0 {
				t.Errorf("%d: %q %+v", i, out, exit)
			}
			if err := sb.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := made(t, b); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
