package networkpolicy

import (
	"net/netip"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestDecodeRefusesWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "no object": `"a"`, "an unknown field": `{"name":"a","egres":[]}`, "two objects": `{"name":"a"}{"name":"b"}`, "no name": `{"egress":[]}`,
		"a name that is none": `{"name":"A b"}`, "a mode that is none": `{"name":"a","mode":"open"}`, "a range that is none": `{"name":"a","egress":[{"cidr":"10.0.0.0/99"}]}`,
		"a port too large": `{"name":"a","egress":[{"host":"a.example.com","ports":[70000]}]}`,
	} {
		if n, _, err := decode(text); err == nil {
			t.Errorf("%s is accepted as %q", name, n)
		} else if driver.CodeOf(err) != driver.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheDigestIsOfWhatIsAllowed(t *testing.T) {
	t.Parallel()
	one, err := network.Canonical(driver.Network{Egress: []driver.Rule{{Host: "a.example.com"}}})
	if err != nil {
		t.Fatal(err)
	}
	other := one
	other.Egress = []driver.Rule{{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Ports: []uint16{443}}}
	if egress.Digest(one) == egress.Digest(other) || egress.Digest(driver.Network{}) == egress.Digest(driver.Network{Learn: true}) {
		t.Error("the digest does not tell policies apart")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"name":"pypi","egress":[{"host":"pypi.org","ports":[443]},{"cidr":"::/0","why":"x"}],"expose":[80],"mode":"proxy","learn":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		name, n, err := decode(text)
		if err != nil {
			return
		}
		if n, err = network.Canonical(n); err != nil {
			return
		}
		again, m, err := decode(egress.Encode(name, n))
		if err != nil || again != name || egress.Digest(m) != egress.Digest(n) {
			t.Errorf("%q reads back as %q, %v, %v", text, again, m, err)
		}
	})
}
