package prove

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// owner is the world as the owner's process has it in mode proxy: what the
// proxy resolves and dials comes to a canary in this process, and not to the
// machine's network.
type owner struct {
	*world
	server *probe.Server

	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

func (o *owner) into(b driver.Backend) error {
	opts, ok := driver.As[*outlet.Options](b)
	if !ok {
		return driver.Unsupported("mode", "the backend has no proxy in this process", "leave the mode proxy out")
	}
	var err error
	if o.server, err = probe.NewServer(o.env); err != nil {
		return err
	}
	opts.Lookup, opts.Dial = o.lookup, o.dial
	return nil
}

func (o *owner) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	o.witness.add(probe.Event{At: time.Now().UnixNano(), Proto: "lookup", Payload: []byte(name)})
	addrs := o.env.Lookup(name)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return addrs, nil
}

func (o *owner) dial(_ context.Context, to netip.AddrPort) (net.Conn, error) {
	o.witness.add(probe.Event{At: time.Now().UnixNano(), Proto: "tcp", To: to.Addr().Unmap(), Port: to.Port()})
	near, far := net.Pipe()
	o.mu.Lock()
	o.conns = append(o.conns, near, far)
	o.mu.Unlock()
	o.all.Go(func() { o.server.Serve(far, to.Port()) })
	return &watched{near, o, to}, nil
}

// wait returns once nobody speaks any more.
func (o *owner) wait() {
	o.mu.Lock()
	for _, c := range o.conns {
		_ = c.Close()
	}
	o.mu.Unlock()
	o.all.Wait()
}

// watched tells what is written to a connection.
type watched struct {
	net.Conn
	o  *owner
	to netip.AddrPort
}

func (w *watched) Write(p []byte) (int, error) {
	w.o.witness.add(probe.Event{At: time.Now().UnixNano(), Proto: "tcp", To: w.to.Addr().Unmap(), Port: w.to.Port(), Payload: append([]byte(nil), p...)})
	return w.Conn.Write(p)
}
