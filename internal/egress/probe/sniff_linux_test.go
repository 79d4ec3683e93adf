package probe

import (
	"crypto/tls"
	"net/netip"
	"strings"
	"testing"
)

func TestAPacketMadeByHandIsRead(t *testing.T) {
	t.Parallel()
	p := packet(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.77"), "sign")
	e, ok := parsePacket(p)
	if !ok || e.Proto != "udp" || e.Port != 9999 || e.To.String() != "198.51.100.77" || e.From.String() != "192.0.2.1" || string(e.Payload) != "sign" {
		t.Errorf("%+v, %v", e, ok)
	}
	tcp := append([]byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 77}, 0, 9, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0)
	if e, ok := parsePacket(tcp); !ok || e.Proto != "tcp" || e.Port != 443 {
		t.Errorf("what opens a connection: %+v, %v", e, ok)
	}
	tcp[33] = 16
	if e, ok := parsePacket(tcp); ok {
		t.Errorf("what only acknowledges: %+v", e)
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(packet(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.77"), "sign"))
	f.Add([]byte{0x60})
	f.Fuzz(func(t *testing.T, p []byte) {
		if e, ok := parsePacket(p); ok && (!e.To.IsValid() || e.Proto == "" || len(e.Payload) > maxPayload) {
			t.Errorf("%x: %+v", p, e)
		}
	})
}

// What is changed of a ClientHello is still one, with what was added.
func TestAClientHelloIsExtended(t *testing.T) {
	t.Parallel()
	h, err := captureHello(t.Context(), &tls.Config{ServerName: "a.example", NextProtos: []string{"sbx0123456789abc"}})
	if err != nil || !strings.Contains(h, "a.example") || !strings.Contains(h, "sbx0123456789abc") {
		t.Fatalf("%q, %v", h, err)
	}
	longer := extend(h, 0xfe0d, []byte("covered"))
	if len(longer) != len(h)+4+7 || int(longer[3])<<8|int(longer[4]) != len(longer)-5 || !strings.HasSuffix(longer, "covered") {
		t.Errorf("%q", longer)
	}
	cut := records(h)
	if len(cut) != len(h)+5 || cut[0] != 0x16 || cut[25] != 0x16 {
		t.Errorf("%q", cut)
	}
}
