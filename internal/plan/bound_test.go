package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A review tells of a list that is too long as of any that cannot be read.
func TestAnAllowlistThatIsTooLongIsAProblemOfItsResource(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("resource \"sandboxio_network_policy\" \"n\" {\n  name = \"n\"\n  egress = [\n")
	for i := range driver.MaxRules + 1 {
		fmt.Fprintf(&b, "    { host = \"h%d.example.com\" },\n", i)
	}
	b.WriteString("  ]\n}\n")
	items, _ := read(t, write(t, map[string]string{"main.tf": b.String()}), Options{})
	if len(items) != 1 || items[0].Problem == nil || !strings.Contains(items[0].Problem.Error(), "network.egress: invalid: 50001 rules are too many") {
		t.Errorf("%d items", len(items))
	}
}
