//go:build dockertest

package guest_test

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// rawInput writes benchBytes to a container's attached stdin, until a program
// that throws them away has read them all.
func rawInput(b *testing.B) time.Duration {
	b.Helper()
	conn, end := rawAttach(b, "head -c "+strconv.Itoa(benchBytes)+" >/dev/null; echo done")
	defer end()
	start := time.Now()
	if _, err := io.Copy(conn, struct{ io.Reader }{zeros(benchBytes)}); err != nil {
		b.Fatal(err)
	}
	var done [5]byte
	if _, err := io.ReadFull(attach(conn), done[:]); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkTunnel carries bytes of a program's connection out and in, and
// fails where that is less than 0.6 of a raw attached stream's speed.
func BenchmarkTunnel(b *testing.B) {
	for name, c := range map[string]struct {
		raw    func(*testing.B) time.Duration
		script string
		serve  func(guest.Conn) error
	}{
		"up": {rawStream, `s.sendall(b'.'); s.recv(1)
b = bytes(1 << 18)
for _ in range(` + strconv.Itoa(benchBytes>>18) + `): s.sendall(b)
s.recv(1)`, func(conn guest.Conn) error { _, err := io.CopyN(io.Discard, conn, benchBytes); return err }},
		"down": {rawInput, `s.sendall(b'.'); s.recv(1)
b = bytearray(1 << 18); n = 0
while n < ` + strconv.Itoa(benchBytes) + `: n += s.recv_into(b)
s.sendall(b'.')`, func(conn guest.Conn) error {
			if _, err := io.Copy(conn, zeros(benchBytes)); err != nil {
				return err
			}
			_, err := io.ReadFull(conn, make([]byte, 1))
			return err
		}},
	} {
		b.Run(name, func(b *testing.B) {
			took := make(chan time.Duration)
			box := listening(b, func(_ context.Context, conn guest.Conn) {
				_, err := io.ReadFull(conn, make([]byte, 1))
				start := time.Now()
				if err == nil {
					_, err = conn.Write([]byte("."))
				}
				if err == nil {
					err = c.serve(conn)
				}
				if err != nil {
					b.Error(err)
				}
				took <- time.Since(start)
			})
			var ours, raws []time.Duration
			for b.Loop() {
				for range 9 { // by turns
					raws = append(raws, c.raw(b))
					p, err := box.guest.Start(b.Context(), driver.Cmd{Args: []string{"python3", "-c", connected + "s = connect()\n" + c.script}, Timeout: time.Minute})
					if err != nil {
						b.Fatal(err)
					}
					ours = append(ours, <-took)
					if err := p.Kill(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			part := float64(median(raws)) / float64(median(ours))
			b.ReportMetric(part, "x-raw-stream")
			if part < 0.6 {
				b.Errorf("a tunnel has %.2f of a raw stream's speed, below 0.60", part)
			}
			b.ReportMetric(benchBytes/1e6/median(raws).Seconds(), "raw-MB/s")
			b.ReportMetric(benchBytes/1e6/median(ours).Seconds(), "tunnel-MB/s")
		})
	}
}
