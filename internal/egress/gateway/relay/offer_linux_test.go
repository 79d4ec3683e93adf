package relay

import (
	"net"
	"os/exec"
	"syscall"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// A connection that comes while a relay ends goes to the next one.
func TestAConnectionIsOfferedToAnotherRelay(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), Options{Conns: 10, Files: MinFiles})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.mu.Lock()
	since := c.mates[0].since
	c.mu.Unlock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Close(ends[1])
	conn, err := connOf(ends[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	gone := exec.CommandContext(t.Context(), "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.mates = append([]*mate{{crew: c, process: gone.Process, conn: conn.(*net.UnixConn), since: since, held: map[uint32]func(error){}}}, c.mates...) //nolint:forcetypeassert // it is one
	c.mu.Unlock()
	a, b := pair(t)
	ended := make(chan error, 1)
	c.Carry(t.Context(), gateway.Passage{Client: a, Server: b, Said: []byte("GET / HTTP/1.1\r\n")}, func(err error) { ended <- err })
	c.mu.Lock()
	if len(c.mates) != 1 || len(c.mates[0].held) != 1 {
		t.Errorf("%d relays are left, and the first has %d connections", len(c.mates), len(c.mates[0].held))
	}
	c.mu.Unlock()
	select {
	case err := <-ended:
		t.Errorf("it ended: %v", err)
	default:
	}
}
