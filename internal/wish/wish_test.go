package wish

import (
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"example.com": "example.com", "Bücher.example": "xn--bcher-kva.example", "*.bücher.example": "*.xn--bcher-kva.example", "": "",
		"not a name":            "not a name", // driver.Canonical's to refuse
		"xn--bcher-kva.example": "xn--bcher-kva.example", "XN--bcher-KVA.example.": "XN--bcher-KVA.example.", "xn--.example": "xn--.example", "r3---sn-a.example": "r3---sn-a.example",
	} {
		if got, err := Host("at", in); got != want || err != nil {
			t.Errorf("Host(%q) = %q, %v", in, got, err)
		}
	}
	// A label that no name is written as could be read as another one (M01).
	for _, in := range []string{strings.Repeat("é", 600), "xn--é.example", "xn--example-.com", "xn--99999999999.example", "*.xn--a.example"} {
		if got, err := Host("at", in); err == nil {
			t.Errorf("Host(%.20q) = %q", in, got)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	if d, err := Duration("at", "1h30m"); d != 90*time.Minute || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	for _, in := range []string{"0s", "-1s", "5", "", "soon"} {
		if d, err := Duration("at", in); err == nil {
			t.Errorf("Duration(%q) = %v", in, d)
		}
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	for in, good := range map[int64]bool{0: false, -1: false, 1: true, 65535: true, 65536: false} {
		if p, err := Port("at", in); (err == nil) != good || good && int64(p) != in {
			t.Errorf("Port(%d) = %d, %v", in, p, err)
		}
	}
}

func TestARulesProblemsAreToldAtItsField(t *testing.T) {
	t.Parallel()
	if err := Rule("network.egress[3]", driver.Rule{Host: "example.com"}); err != nil {
		t.Error(err)
	}
	err := Rule("network.egress[3]", driver.Rule{Host: "not a host"})
	if p := driver.Problems(err); len(p) != 1 || !strings.HasPrefix(p[0].Field, "network.egress[3]") {
		t.Errorf("got %v", err)
	}
}

func TestAnOrderHasEveryDefault(t *testing.T) {
	t.Parallel()
	o := Order(sandbox.Template{Reaper: "r"}, driver.Info{DefaultImage: "i"})
	if o.Image != "i" || o.Lifetime != driver.DefaultLifetime || o.Resources.PIDs == 0 || o.Facts.Reaper != "r" {
		t.Errorf("got %+v", o)
	}
}
