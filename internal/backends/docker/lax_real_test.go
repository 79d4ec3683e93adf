//go:build dockertest

package docker

import (
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestAHostThatTakesInBroadcastsIsRefused is of a host that listens on the
// sandbox's bridge though it has no address there: what a sandbox sends to
// everybody would reach its programs past the gateway.
func TestAHostThatTakesInBroadcastsIsRefused(t *testing.T) {
	plain, image := engine(t)
	b, err := Open(t.Context(), plain.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	if err := create(t, b, spec).Kill(t.Context()); err != nil { // it has looked
		t.Fatal(err)
	}
	if b.looked.host.Lax {
		t.Error("this engine's host is one")
	}
	b.looked.at = time.Time{} // the doctor looks itself
	if f := modeTransparent(t, b); !f.OK {
		t.Errorf("%+v", f)
	}
	b.looked.host.Lax, b.looked.at = true, time.Now()
	spec = realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	_, err = b.Create(t.Context(), spec)
	if e := driver.Problems(err); len(e) != 1 || e[0].Code != driver.CodeUnsupported || e[0].Field != "network.mode" || !strings.Contains(e[0].Hint, "rp_filter=2") {
		t.Errorf("%v", err)
	}
	if f := modeTransparent(t, b); f.OK || !strings.Contains(f.Hint, "rp_filter=2") {
		t.Errorf("the doctor says %+v", f)
	}
	for _, token := range []string{spec.Token, "doctor"} {
		if l := ofInstance(t, b, token); len(l) > 0 {
			t.Errorf("left behind: %v", l)
		}
	}
}

func modeTransparent(t *testing.T, b *Backend) driver.Finding {
	t.Helper()
	for _, f := range b.Examine(t.Context()) {
		if f.Name == "mode transparent" {
			return f
		}
	}
	t.Fatal("the doctor does not tell")
	return driver.Finding{}
}
