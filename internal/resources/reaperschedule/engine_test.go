//go:build dockertest

package reaperschedule_test

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

func TestAccEngineAScheduleIsKeptRepairedAndRemoved(t *testing.T) {
	t.Parallel()
	host, _ := acctest.Engine(t)
	name := fmt.Sprintf("acctest-%d", os.Getpid())
	config := func(more string) string {
		return fmt.Sprintf("provider \"sandboxio\" {\n  docker {\n    host = %q\n  }\n}\nresource \"sandboxio_reaper_schedule\" \"s\" {\n  name = %q\n  labels = { test = \"nobody-has-this\" }\n%s\n}\noutput \"keeper\" {\n  value = sandboxio_reaper_schedule.s.keeper_id\n}\n", host, name, more)
	}
	w := acctest.NewWorkspace(t, sandboxio.Options{}, config(`  interval = "60s"`))
	t.Cleanup(func() {
		if left := acctest.Ask(t, host, "GET", "/containers/json?all=true&filters="+url.QueryEscape(`{"label":["sandboxio.role=keeper"]}`)); strings.Contains(string(left), name) {
			t.Errorf("left behind: %s", left)
		}
	})
	w.Apply(t)
	w.Empty(t)
	first := w.Output(t, "keeper")

	w.Write(t, "main.tf", config("  cron = \"*/5 * * * *\"\n  max_age = \"1h\"\n  dry_run = true"))
	if out := w.Apply(t); !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
		t.Errorf("a change of the schedule says:\n%s", out)
	}
	w.Empty(t)
	second := w.Output(t, "keeper")
	if second == first || second == "" {
		t.Errorf("the keeper %q became %q", first, second)
	}

	// One that somebody stopped is put right, not forgotten.
	acctest.Ask(t, host, "DELETE", "/containers/"+second+"?force=true")
	if out := w.Apply(t); strings.Contains(out, "No changes") {
		t.Errorf("a keeper that is gone is not missed:\n%s", out)
	}
	w.Empty(t)
	w.Destroy(t)
}
