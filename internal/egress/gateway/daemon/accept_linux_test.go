package daemon

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestConnectionsBeyondTheMostWaitAndAreServed(t *testing.T) {
	t.Parallel()
	const most, conns = 2, 7
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listener.(*net.TCPListener) //nolint:forcetypeassert // it is one
	ctx, cancel := context.WithCancel(t.Context())
	began, end := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	now, highest := 0, 0
	var all sync.WaitGroup
	defer all.Wait()
	defer l.Close()
	defer cancel()
	all.Go(func() {
		accept(ctx, l, most, func(c *net.TCPConn) {
			defer c.Close()
			mu.Lock()
			now++
			highest = max(highest, now)
			mu.Unlock()
			began <- struct{}{}
			<-end
			mu.Lock()
			now--
			mu.Unlock()
		})
	})
	for range conns {
		c, err := new(net.Dialer).DialContext(ctx, "tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range most {
		<-began
	}
	for range conns - most { // each that ends lets another one in
		end <- struct{}{}
		<-began
	}
	for range most {
		end <- struct{}{}
	}
	mu.Lock()
	defer mu.Unlock()
	if highest != most {
		t.Errorf("%d at a time", highest)
	}
}

func TestAGatewayNeedsFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{1024: 368, 20_000: 9_856, 1 << 20: mostConns} {
		if got, err := openings(files); err != nil || got != want {
			t.Errorf("%d files: %d, %v", files, got, err)
		}
	}
	_, err := openings(1023)
	if driver.CodeOf(err) != driver.CodeUnsupported || !strings.Contains(err.Error(), "1024") {
		t.Errorf("%v", err)
	}
}
