package relay

import (
	"context"
	"errors"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// Arg is the only argument of a program that is to call Main.
const Arg = "relay"

// orders is the descriptor that a relay gets its orders by.
const orders = 3

// Main is a relay, until the gateway that started it has gone. It gives the
// program's exit code.
func Main() int {
	// Nobody of the same user may look into it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 1
	}
	c, err := connOf(orders)
	if err != nil {
		return 1
	}
	from, ok := c.(*net.UnixConn)
	if !ok {
		return 1
	}
	return carry(from)
}

// carry carries what it is handed, and returns when all of it has ended.
func carry(from *net.UnixConn) int {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer from.Close()
	defer cancel()
	turns := gateway.NewTurns()
	var mu sync.Mutex
	tell := func(id uint32, why egress.Reason) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = from.Write(report(id, why)) // who does not take it has gone
	}
	tell(ready, "")
	for {
		id, p, err := receiveOrder(from)
		switch {
		case errors.Is(err, errLost):
			tell(id, egress.Capacity)
		case err != nil:
			return 0
		default:
			all.Go(func() { tell(id, gateway.Refused(p.Carry(ctx, turns))) })
		}
	}
}
