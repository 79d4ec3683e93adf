package egress

import (
	"net/netip"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The digests stand in states and in evidence.
func TestADigestIsOfWhatIsAllowedAndStaysTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		network driver.Network
		want    string
	}{
		"nothing": {driver.Network{}, "sha256:9fb46abdd3408e55dcf3066e4fb2757c6b393dc0c711811bf100e363549afa7b"},
		"an allowlist": {driver.Network{Egress: []driver.Rule{
			{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{7000}}, {Host: "*.example.com", Ports: []uint16{80, 443}, Why: "a < b"},
		}}, "sha256:209bb987f051749da89992e9f7a6c4903c2ade2e3a72a41fd84299844e5d8e50"},
		"the same in mode proxy": {driver.Network{Mode: driver.Proxy, Egress: []driver.Rule{
			{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{7000}}, {Host: "*.example.com", Ports: []uint16{80, 443}, Why: "a < b"},
		}}, "sha256:76610d9a724811327160b8ccafd1ac26cefcf7ff2e8554a927d28cf07171f924"},
	} {
		if got := Digest(c.network); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
