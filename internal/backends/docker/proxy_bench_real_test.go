//go:build dockertest

package docker

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// BenchmarkProxyCreate makes sandboxes with a proxy and without, alternating,
// and reports how much longer the former take to a first output: nothing
// measurable is promised.
func BenchmarkProxyCreate(b *testing.B) {
	be, image := engine(b)
	var with, without []time.Duration
	once := func(n driver.Network) time.Duration {
		spec := realSpec(b, image)
		spec.Network = n
		began := time.Now()
		sb, err := be.Create(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		p, err := sb.Start(b.Context(), driver.Cmd{Args: []string{"/bin/echo", "hi"}, Timeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Recv(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if err := sb.Kill(b.Context()); err != nil {
			b.Fatal(err)
		}
		return took
	}
	proxied := driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Host: "example.com", Ports: []uint16{443}}}}
	for b.Loop() {
		// Each comes first as often: what is first finds the engine at rest.
		without = append(without, once(driver.Network{}))
		with = append(with, once(proxied), once(proxied))
		without = append(without, once(driver.Network{}))
	}
	b.ReportMetric(float64(median(with))/float64(median(without)), "x-no-network")
	b.ReportMetric(float64(median(without).Microseconds())/1000, "no-network-ms")
	b.ReportMetric(float64(median(with).Microseconds())/1000, "proxy-ms")
}

// BenchmarkProxyDownload fetches 64 MiB through the whole way: program, guest,
// engine, proxy, server. What is promised of it, against a raw stream, is
// measured in package guest.
func BenchmarkProxyDownload(b *testing.B) {
	const size = 64 << 20
	be, image := engine(b)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan struct{})
	defer func() { _ = l.Close(); <-served }()
	go func() {
		defer close(served)
		block := make([]byte, 1<<20)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for range size / len(block) {
				if _, err := c.Write(block); err != nil {
					break
				}
			}
			_ = c.Close()
		}
	}()
	at := netip.MustParseAddrPort(l.Addr().String())
	spec := realSpec(b, image)
	spec.Network = driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Ports: []uint16{at.Port()}}}}
	s := create(b, be, spec)
	script := fmt.Sprintf(`import socket, time
to = %q
def fetch():
    s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(("CONNECT %%s HTTP/1.1\r\nHost: %%s\r\n\r\n" %% (to, to)).encode())
    b = bytearray(1 << 18); n = 0
    while True:
        got = s.recv_into(b)
        if not got: return n
        n += got
start = time.monotonic(); n = fetch()
print(n, time.monotonic() - start)`, at.String())
	b.SetBytes(size)
	var took []time.Duration
	for b.Loop() {
		out, _ := run(b, s, "python3", "-c", script)
		var n int
		var seconds float64
		if _, err := fmt.Sscan(out, &n, &seconds); err != nil || n < size {
			b.Fatalf("%q, %v", out, err)
		}
		took = append(took, time.Duration(seconds*float64(time.Second)))
	}
	b.ReportMetric(size/1e6/median(took).Seconds(), "proxy-MB/s")
}
