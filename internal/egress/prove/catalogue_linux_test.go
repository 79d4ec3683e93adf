package prove

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
)

func TestTheCatalogueHasAnAttemptOfEachName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range Catalogue() {
		if seen[a.Name] || a.Text == "" {
			t.Errorf("%s comes twice, or says nothing", a.Name)
		}
		seen[a.Name] = true
		if !probe.Knows(a.Name) {
			t.Errorf("the probe does not know %s", a.Name)
		}
	}
	for _, m := range Modes() {
		for _, name := range Controls(m) {
			if !probe.Knows(name) {
				t.Errorf("the probe does not know %s", name)
			}
		}
	}
}
