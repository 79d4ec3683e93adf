//go:build dockertest

package guest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// BenchmarkExecTrue runs /bin/true through the guest, and reports how many
// times faster that is than a docker exec in the same run.
func BenchmarkExecTrue(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	ctx := context.Background()
	const rounds = 20
	start := time.Now()
	for range rounds {
		made, err := engine.ExecCreate(ctx, box.id, client.ExecCreateOptions{AttachStdout: true, AttachStderr: true, Cmd: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		res, err := engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Reader)
		res.Close()
	}
	docker := time.Since(start) / rounds
	for b.Loop() {
		if r, err := runOn(ctx, box.guest, driver.Cmd{Args: []string{"/bin/true"}}, nil); err != nil || r.exit.Code != 0 {
			b.Fatal(r, err)
		}
	}
	own := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(docker)/float64(own), "x-docker-exec")
	b.ReportMetric(float64(docker.Microseconds())/1000, "docker-ms")
}

// BenchmarkOutput measures a stream of output.
func BenchmarkOutput(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	ctx := context.Background()
	const size = 32 << 20
	b.SetBytes(size)
	for b.Loop() {
		p, err := box.guest.Start(ctx, driver.Cmd{Args: []string{"head", "-c", "33554432", "/dev/zero"}, Timeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			c, err := p.Recv(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(c.Data)
		}
		if n != size {
			b.Fatal(n)
		}
	}
}

// BenchmarkStat measures an operation on files.
func BenchmarkStat(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	for b.Loop() {
		if _, err := box.guest.Files().Stat(b.Context(), "/work"); err != nil {
			b.Fatal(err)
		}
	}
}
