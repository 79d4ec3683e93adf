package gateway

import (
	"net/netip"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// headers are the beginning of a packet to 203.0.113.9, port 22.
func headers(proto byte, change ...func([]byte)) []byte {
	b := []byte{0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, proto, 0, 0, 10, 99, 1, 3, 203, 0, 113, 9, 0xc3, 0x50, 0, 22, 1, 2, 3, 4}
	for _, c := range change {
		c(b)
	}
	return b
}

func TestADroppedPacketSaysWhatWasTried(t *testing.T) {
	t.Parallel()
	p, err := egress.Compile(ruleList(t, "203.0.113.0/24:443", "example.com"), egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to := func(a string) func([]byte) { return func(b []byte) { copy(b[16:], netip.MustParseAddr(a).AsSlice()) } }
	for name, c := range map[string]struct {
		packet []byte
		port   uint16
		reason egress.Reason
	}{
		"another port of a range that is open":        {headers(6), 22, egress.Port},
		"an address that no rule holds":               {headers(6, to("198.51.100.1")), 22, egress.Address},
		"metadata":                                    {headers(6, to("169.254.169.254")), 22, egress.Protected},
		"what a rule allows, when there are too many": {headers(6, func(b []byte) { b[22], b[23] = 443>>8, 443&0xff }), 443, egress.Capacity},
		"a datagram":                                  {headers(17), 22, egress.NotTCP},
		"an echo request":                             {headers(1), 0, egress.NotTCP},
		"a later fragment":                            {headers(17, func(b []byte) { b[7] = 9 }), 0, egress.NotTCP},
		"options that reach beyond what is told":      {headers(6, func(b []byte) { b[0] = 0x4f }), 0, egress.NotTCP},
		"a header that is too short":                  {headers(6, func(b []byte) { b[0] = 0x41 }), 0, egress.NotTCP},
	} {
		d, ok := Dropped(p, c.packet, time.Unix(1, 0))
		if !ok || d.Port != c.port || d.Reason != c.reason || !d.Addr.Is4() || d.First.Unix() != 1 {
			t.Errorf("%s: %+v, %v", name, d, ok)
		}
	}
	for name, packet := range map[string][]byte{"nothing": nil, "IPv6": headers(6, func(b []byte) { b[0] = 0x60 }), "half a header": headers(6)[:19]} {
		if d, ok := Dropped(p, packet, time.Now()); ok {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func FuzzDropped(f *testing.F) {
	f.Add(headers(6))
	f.Add(headers(17)[:22])
	f.Fuzz(func(t *testing.T, packet []byte) {
		if d, ok := Dropped(nil, packet, time.Now()); ok && (d.Reason == egress.Allowed || !d.Addr.IsValid()) {
			t.Errorf("%+v", d)
		}
	})
}
