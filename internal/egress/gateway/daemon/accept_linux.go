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

// accept serves each connection in a goroutine of its own, most at a time, and
// returns when the listener is closed and all of them have ended. Those beyond
// wait in the kernel, where they take no descriptor.
func accept(ctx context.Context, l *net.TCPListener, most int, serve func(*net.TCPConn)) {
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, most)
	pause := time.Millisecond
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c, err := l.AcceptTCP()
		if err != nil {
			<-room
		}
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
			all.Go(func() {
				defer func() { <-room }()
				serve(c)
			})
		}
	}
}
