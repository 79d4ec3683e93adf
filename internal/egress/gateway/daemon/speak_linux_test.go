package daemon

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
)

// However long the names are that a program floods the line with, it is whole,
// it counts all, and an attempt at metadata is in it.
func TestALineTellsMetadataInAFloodOfNames(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{"short": "a", "long": strings.Repeat("\xff", 250)} {
		var tally egress.Tally
		const many = 5000
		for i := range many {
			tally.Deny(egress.Denial{Host: fmt.Sprintf("%d%s", i, host), Reason: egress.Malformed, First: time.Unix(int64(i), 0)})
		}
		tally.Deny(egress.Denial{Addr: netip.MustParseAddr("169.254.169.254"), Port: 80, Reason: egress.Protected, First: time.Unix(many, 0)})
		var out bytes.Buffer
		var told told
		for range 2 { // the second time there is nothing new
			told.tell(&tally, &speaker{w: &out})
		}
		l, err := boot.ParseLine(out.Bytes())
		if err != nil || l.Denied == nil || out.Len() > boot.MaxDenied {
			t.Fatalf("%s names: %d bytes: %v", name, out.Len(), err)
		}
		count := l.Denied.Other
		for _, d := range l.Denied.Told {
			count += d.Count
		}
		if count != many+1 || len(l.Denied.Told) < 2 || !slices.ContainsFunc(l.Denied.Told, func(d egress.Denial) bool { return d.Addr.IsLinkLocalUnicast() }) {
			t.Errorf("%s names: %d of %d in %d kinds", name, count, many+1, len(l.Denied.Told))
		}
	}
}
