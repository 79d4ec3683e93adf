//go:build dockertest

package docker

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestAProgramFillsNoConnectionTable begins connections as fast as it can where
// a rule for CIDRs lets it, to addresses that do not answer. What the engine's host takes note of is told only:
// where it filters its bridges, that is all that a sandbox sends, before any
// gateway sees it.
func TestAProgramFillsNoConnectionTable(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "198.51.100.128/25:9")
	sb := create(t, b, spec)
	gate := gatewayOf(t, b, sb)
	count := func(network string) int {
		made, err := raw(t, b).ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: looseConfig(image, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"),
			HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(network)}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.remove(cleanup(t), raw(t, b), made.ID) }()
		n, err := strconv.Atoi(strings.TrimSpace(runRaw(t, b, made.ID)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	host := count("host")
	const many = gateway.BeginBurst + 8000
	start := time.Now()
	if out := sh(t, sb, `python3 -c '
import socket
for i in range(`+strconv.Itoa(many)+`):
    s = socket.socket(); s.setblocking(False); s.connect_ex(("198.51.100.%d" % (130 + i % 100), 9)); s.close()
print("begun")'`); !strings.Contains(out, "begun") {
		t.Fatal(out)
	}
	n, took := count("container:"+gate), time.Since(start)
	t.Logf("%d connections in %v: %d in the gateway's table, %d more in the host's", many, took, n, count("host")-host)
	if most := gateway.BeginBurst + gateway.BeginRate*int(took/time.Second+1) + 100; n > most {
		t.Errorf("%d entries, want at most %d", n, most)
	}
	d, _ := driver.As[driver.Denier](sb)
	eventually(t, 60*time.Second, "it is told", func() bool {
		got, err := d.Denied(t.Context())
		if err != nil && !errors.Is(err, driver.CodeUnavailable) { // it may have its hands full
			t.Fatal(err)
		}
		for _, one := range got.Told {
			if one.Reason == "capacity" && one.Port == 9 {
				return true
			}
		}
		return false
	})
}
