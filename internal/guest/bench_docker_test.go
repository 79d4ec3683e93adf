//go:build dockertest

package guest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The figures of this file are ratios between ours and the engine's own calls
// in the same run, alternating, so that a busy machine slows both.

// engineExec is what /bin/true costs by an exec of the engine's.
func engineExec(b *testing.B, id string) time.Duration {
	b.Helper()
	start := time.Now()
	made, err := engine.ExecCreate(b.Context(), id, client.ExecCreateOptions{AttachStdout: true, AttachStderr: true, Cmd: []string{"/bin/true"}})
	if err != nil {
		b.Fatal(err)
	}
	res, err := engine.ExecAttach(b.Context(), made.ID, client.ExecAttachOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer res.Close()
	_, _ = io.Copy(io.Discard, res.Reader)
	return time.Since(start)
}

// BenchmarkExecTrue runs /bin/true through the guest, and reports how many
// times faster that is than an exec of the engine's: 25 is promised.
func BenchmarkExecTrue(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	var ours, engines []time.Duration
	for b.Loop() {
		if len(ours)%50 == 0 {
			b.StopTimer()
			engines = append(engines, engineExec(b, box.id))
			b.StartTimer()
		}
		start := time.Now()
		if r, err := runOn(b.Context(), box.guest, driver.Cmd{Args: []string{"/bin/true"}}, nil); err != nil || r.exit.Code != 0 {
			b.Fatal(r, err)
		}
		ours = append(ours, time.Since(start))
	}
	b.ReportMetric(float64(median(engines))/float64(median(ours)), "x-engine-exec")
	b.ReportMetric(ms(median(engines)), "engine-ms")
	b.ReportMetric(ms(median(ours)), "p50-ms")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(d []time.Duration) time.Duration { return percentile(d, 50) }

func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)-1)*p/100]
}

// benchBytes go through a stream in one round.
const benchBytes = 64 << 20

// rawAttach is a container's attached stream, with nothing of ours in between.
// Both end with the round.
func rawAttach(b *testing.B, script string) (net.Conn, func()) {
	b.Helper()
	cfg := &container.Config{Image: image, Entrypoint: []string{"sh", "-c", script}, OpenStdin: true, StdinOnce: true,
		Labels: map[string]string{"sandboxio-test": os.Getenv("SANDBOXIO_TEST_RUN")}}
	made, err := engine.ContainerCreate(b.Context(), client.ContainerCreateOptions{Config: cfg, HostConfig: &container.HostConfig{NetworkMode: "none", LogConfig: container.LogConfig{Type: "none"}}})
	if err != nil {
		b.Fatal(err)
	}
	box := &box{t: b, id: made.ID}
	res, err := engine.ContainerAttach(b.Context(), made.ID, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true})
	if err == nil {
		if _, err = engine.ContainerStart(b.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
			res.Close()
		}
	}
	if err != nil {
		box.remove()
		b.Fatal(err)
	}
	return res.Conn, func() { res.Close(); box.remove() }
}

// rawStream reads the same bytes from a container's attached stdout, taking
// the engine's frames apart as ours does.
func rawStream(b *testing.B) time.Duration {
	b.Helper()
	conn, end := rawAttach(b, "read go; exec head -c "+strconv.Itoa(benchBytes)+" /dev/zero")
	defer end()
	start := time.Now()
	if _, err := io.WriteString(conn, "\n"); err != nil {
		b.Fatal(err)
	}
	if n, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{attach(conn)}); n != benchBytes || err != nil {
		b.Fatal(n, err)
	}
	return time.Since(start)
}

// BenchmarkOutput streams output through the guest, and reports which part of
// a raw attached stream's speed that is: 0.6 is promised.
func BenchmarkOutput(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	before := rss(b, box)
	b.SetBytes(benchBytes)
	var ours, raws []time.Duration
	for b.Loop() {
		b.StopTimer()
		raws = append(raws, rawStream(b))
		b.StartTimer()
		start := time.Now()
		p, err := box.guest.Start(b.Context(), driver.Cmd{Args: []string{"head", "-c", strconv.Itoa(benchBytes), "/dev/zero"}, Timeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			c, err := p.Recv(b.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(c.Data)
		}
		if n != benchBytes {
			b.Fatal(n)
		}
		ours = append(ours, time.Since(start))
	}
	b.ReportMetric(float64(median(raws))/float64(median(ours)), "x-raw-stream")
	b.ReportMetric(benchBytes/1e6/median(raws).Seconds(), "raw-MB/s")
	b.ReportMetric(before, "idle-RSS-MiB")
	b.ReportMetric(rss(b, box), "RSS-MiB")
}

// rss is what PID 1 has in memory, in MiB.
func rss(tb testing.TB, box *box) float64 {
	tb.Helper()
	r := box.run("sed", "-n", `s/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p`, "/proc/1/status")
	kib, err := strconv.Atoi(strings.TrimSpace(r.stdout))
	if err != nil {
		tb.Fatal(r, err)
	}
	return float64(kib) / 1024
}

// BenchmarkCancel kills trees of processes that resist, and reports how long
// until none is left: 250 ms is promised for 99 of 100.
func BenchmarkCancel(b *testing.B) {
	box := newBox(b, want{boot: guest.Boot{Owned: true}})
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		p := box.start(driver.Cmd{Args: []string{"sh", "-c", "trap '' TERM HUP INT; set -m; for i in 1 2 3 4 5; do (setsid sleep 31337 &) ; sleep 31337 & done; yes >/dev/null & echo up; wait"}})
		b.StartTimer()
		start := time.Now()
		if err := p.Kill(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		b.StopTimer()
		if top := box.top(); strings.Contains(top, "31337") || strings.Contains(top, "yes") {
			b.Fatal(top)
		}
		b.StartTimer()
	}
	b.ReportMetric(ms(percentile(took, 99)), "p99-ms")
	b.ReportMetric(ms(median(took)), "p50-ms")
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
