package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

var errEarly = errors.New("packets are passed on before the packet filter stands: the gateway was made with forwarding on")

func errIPv6(names []string) error {
	return fmt.Errorf("IPv6 is on: %s", strings.Join(names, ", "))
}

// accept serves each connection in a goroutine of its own, and returns when the
// listener is closed and all of them have ended.
func accept(ctx context.Context, l *net.TCPListener, serve func(*net.TCPConn)) {
	var all sync.WaitGroup
	defer all.Wait()
	pause := time.Millisecond
	for {
		c, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no more descriptors, above all: some will end
			select {
			case <-time.After(pause):
				pause = min(2*pause, time.Second)
			case <-ctx.Done():
				return
			}
		default:
			pause = time.Millisecond
			all.Go(func() { serve(c) })
		}
	}
}
