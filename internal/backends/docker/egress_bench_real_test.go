//go:build dockertest

package docker

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// timed is a program that measures what its arguments ask for, and prints the
// figures: bytes a second of a transfer, seconds of each of n connections.
const timed = `
import json, socket, sys, time
what, addr, port, host, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
if not addr: addr = socket.gethostbyname(host)
if what == "transfer":
    c = socket.create_connection((addr, port))
    c.sendall(("GET /zeros/%d HTTP/1.1\r\nHost: %s\r\n\r\n" % (n, host)).encode())
    buf = memoryview(bytearray(1 << 20)); began = time.monotonic(); left = n
    while left > 0:
        got = c.recv_into(buf)
        if not got: sys.exit("it ended early")
        left -= got
    print(json.dumps([n / (time.monotonic() - began)]))
else:
    out = []
    for _ in range(n):
        began = time.monotonic()
        c = socket.create_connection((addr, port))
        c.sendall(("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host).encode())
        if b"alive" not in c.recv(4096): sys.exit("no answer")
        out.append(time.monotonic() - began); c.close()
    print(json.dumps(out))
`

// figures are what timed prints.
func figures(t testing.TB, out string) []float64 {
	t.Helper()
	var f []float64
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return f
}

// plainly runs timed in a container on the uplink itself, with the caps of a
// sandbox.
func plainly(t testing.TB, b *Backend, w *internet, image string, args ...string) []float64 {
	t.Helper()
	c := looseConfig(image, append([]string{"python3", "-c", timed}, args...)...)
	r := testSpec("x").Resources
	made, err := raw(t, b).ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: c, HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(w.name),
		Resources: container.Resources{CPUPeriod: cpuPeriod, CPUQuota: cpuQuota(r.CPUMillis), Memory: memoryBytes(r)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.remove(cleanup(t), raw(t, b), made.ID) }()
	return figures(t, runRaw(t, b, made.ID))
}

func inside(t testing.TB, sb driver.Sandbox, args ...string) []float64 {
	t.Helper()
	out, exit := run(t, sb, append([]string{"python3", "-c", timed}, args...)...)
	if exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, out)
	}
	return figures(t, out)
}

func middle(f []float64) float64 {
	s := slices.Sorted(slices.Values(f))
	return s[len(s)/2]
}

// filterBridges has the engine's host send what crosses a bridge through its
// packet filter, or not, until the benchmark's end; false where it cannot.
func filterBridges(b *testing.B, backend *Backend, image string, on bool) bool {
	b.Helper()
	set := func(value string) string {
		c := looseConfig(image, "sh", "-c", `at=/proc/sys/net/bridge/bridge-nf-call-iptables; [ ! -e $at ] || { cat $at; echo "$0" > $at; }`, value)
		ctx := cleanup(b)
		made, err := raw(b, backend).ContainerCreate(ctx, client.ContainerCreateOptions{Config: c,
			HostConfig: &container.HostConfig{NetworkMode: "host", CapAdd: []string{"NET_ADMIN"}, ReadonlyPaths: []string{}}})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = backend.remove(ctx, raw(b, backend), made.ID) }()
		return strings.TrimSpace(runRawIn(ctx, b, backend, made.ID))
	}
	was := set(map[bool]string{false: "0", true: "1"}[on])
	if was != "" {
		b.Cleanup(func() { set(was) })
	}
	return !on || was != ""
}

// BenchmarkEgress measures what a gateway costs, against the same without one
// in the same run, by turns, and fails where it costs more than is promised.
func BenchmarkEgress(b *testing.B) {
	plain, image := engine(b)
	w := newInternet(b, plain, image)
	gated := w.backend(b, plain)
	spec := realSpec(b, image)
	spec.Lifetime = 20 * time.Minute
	spec.Network.Egress = rules(b, "allowed.example", worldCIDR+"/32", "allowed.example:8081")
	sb := create(b, gated, spec)
	const size = "1073741824"
	// Engines before 28 send all that crosses a bridge through their host's
	// packet filter, by default: a gateway's way crosses one bridge more. That
	// is reported; what the gateway itself costs is measured without it.
	for name, filtered := range map[string]bool{"transfer": false, "transfer on bridges that are filtered": true} {
		b.Run(name, func(b *testing.B) {
			if !filterBridges(b, plain, image, filtered) {
				b.Log("the engine's host has no such filter")
				return
			}
			for b.Loop() {
				var open, straight, routed []float64
				for range 15 { // some are of half the speed, whatever the way
					open = append(open, plainly(b, plain, w, image, "transfer", worldAllowed, "80", "x.example", size)...)
					straight = append(straight, inside(b, sb, "transfer", worldCIDR, "80", "x.example", size)...)
					routed = append(routed, inside(b, sb, "transfer", "", "80", "allowed.example", size)...)
				}
				rate := middle(open)
				b.ReportMetric(rate/1e6, "plain-MB/s")
				if filtered {
					b.ReportMetric(middle(straight)/rate, "cidr/plain")
					b.ReportMetric(middle(routed)/rate, "host/plain")
					continue
				}
				atLeast(b, "cidr/plain", middle(straight)/rate, 0.8)
				atLeast(b, "host/plain", middle(routed)/rate, 0.5)
			}
		})
	}
	b.Run("connection", func(b *testing.B) {
		for b.Loop() {
			open := plainly(b, plain, w, image, "connect", worldAllowed, "80", "x.example", "300")
			straight := inside(b, sb, "connect", worldCIDR, "80", "x.example", "300")
			routed := inside(b, sb, "connect", "", "80", "allowed.example", "300")
			b.ReportMetric(middle(open)*1e3, "plain-p50-ms")
			atMost(b, "cidr-added-p50-ms", (middle(straight)-middle(open))*1e3, 2)
			atMost(b, "host-added-p50-ms", (middle(routed)-middle(open))*1e3, 2)
		}
	})
	b.Run("ready", func(b *testing.B) {
		for b.Loop() {
			var closed, open []float64
			for range 7 {
				for into, rules := range map[*[]float64][]driver.Rule{&closed: nil, &open: spec.Network.Egress} {
					s := realSpec(b, image)
					s.Network.Egress = rules
					began := time.Now()
					made, err := plain.Create(b.Context(), s)
					if err != nil {
						b.Fatal(err)
					}
					*into = append(*into, time.Since(began).Seconds())
					if err := made.Kill(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(middle(closed)*1e3, "deny-p50-ms")
			b.ReportMetric(middle(open)*1e3, "allowlist-p50-ms")
			atMost(b, "allowlist/deny", middle(open)/middle(closed), 6)
		}
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			s := realSpec(b, image)
			s.Lifetime = 20 * time.Minute
			s.Network.Egress = spec.Network.Egress
			crowd := create(b, gated, s)
			gate := gatewayOf(b, gated, crowd)
			idle := rss(b, gated, gate)
			atMost(b, "idle-MiB", idle/(1<<20), 20)
			const n = 10_000
			p, err := crowd.Start(b.Context(), driver.Cmd{Args: []string{"python3", "-c", fmt.Sprintf(hold, n)}, Timeout: driver.DefaultTimeout})
			if err != nil {
				b.Fatal(err)
			}
			c, err := p.Recv(b.Context())
			for err == nil && string(c.Data) != "held\n" {
				b.Logf("%s", c.Data)
				c, err = p.Recv(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
			atMost(b, "KiB/connection", (rss(b, gated, gate)-idle)/float64(n)/1024, 32)
			if err := p.Kill(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// hold opens so many connections, and ends once all of them were answered.
const hold = `
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
addr, all = socket.gethostbyname("allowed.example"), []
for i in range(%d):
    c = socket.create_connection((addr, 8081), 10)
    c.sendall(b"GET / HTTP/1.1\r\nHost: allowed.example:8081\r\n\r\n")
    all.append(c)
for c in all:
    if b"200 OK" not in c.recv(4096): raise SystemExit("one was refused")
print("held", flush=True)
import time; time.sleep(60)
`

var residentSize = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

// rss is the resident memory of all of a gateway's processes, in bytes, what
// they share counted for each. The engine is on this machine.
func rss(t testing.TB, b *Backend, gate string) float64 {
	t.Helper()
	top, err := raw(t, b).ContainerTop(t.Context(), gate, client.ContainerTopOptions{Arguments: []string{"-eo", "pid,comm"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range top.Processes {
		status, err := os.ReadFile("/proc/" + p[0] + "/status")
		if err != nil {
			t.Fatal(err)
		}
		m := residentSize.FindSubmatch(status)
		if m == nil {
			t.Fatalf("%s", status)
		}
		kib, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += kib * 1024
	}
	return sum
}

func atLeast(b *testing.B, name string, got, want float64) {
	b.Helper()
	b.ReportMetric(got, name)
	if got < want {
		b.Errorf("%s is %.2f, below %.2f", name, got, want)
	}
}

func atMost(b *testing.B, name string, got, want float64) {
	b.Helper()
	b.ReportMetric(got, name)
	if got > want {
		b.Errorf("%s is %.2f, above %.2f", name, got, want)
	}
}
