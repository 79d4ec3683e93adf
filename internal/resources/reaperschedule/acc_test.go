package reaperschedule_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

const at = "sandboxio_reaper_schedule.s"

func block(more string) string {
	return fmt.Sprintf("resource \"sandboxio_reaper_schedule\" \"s\" {\n  name = \"sweep\"\n%s\n}\n", more)
}

// world is a test's own, with the backend's side of it.
func world(t *testing.T) (provider string, s driver.Scheduler) {
	t.Helper()
	w, provider := acctest.World(t)
	s, ok := driver.As[driver.Scheduler](memory.Open(memory.Options{World: w}))
	if !ok {
		t.Fatal("the memory backend keeps no schedules")
	}
	return provider, s
}

func run(t *testing.T, provider string, steps ...resource.TestStep) {
	t.Helper()
	for i := range steps {
		if steps[i].Config != "" {
			steps[i].Config = provider + steps[i].Config
		}
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func planned(config string, action plancheck.ResourceActionType) resource.TestStep {
	return resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(at, action)}}}
}

func TestAccAScheduleRunsChangesInPlaceAndEnds(t *testing.T) {
	t.Parallel()
	provider, s := world(t)
	first := planned(block(`  interval = "300s"`+"\n  labels = { team = \"ml\" }"), plancheck.ResourceActionCreate)
	first.Check = resource.ComposeTestCheckFunc(
		resource.TestCheckResourceAttr(at, "running", "true"), resource.TestCheckResourceAttr(at, "id", "memory/sweep"), resource.TestCheckResourceAttr(at, "interval", "300s"),
		func(*stateOf) error {
			return runs(s, driver.Schedule{Name: "sweep", Interval: 300 * time.Second, Labels: map[string]string{"team": "ml"}})
		},
	)
	run(t, provider, first,
		planned(block(`  interval = "5m"`+"\n  labels = { team = \"ml\" }"), plancheck.ResourceActionNoop),
		planned(block(`  interval = "1m"`+"\n  max_age = \"1h\"\n  dry_run = true"), plancheck.ResourceActionUpdate),
		planned(block(`  interval = "60s"`+"\n  max_age = \"3600s\"\n  dry_run = true"), plancheck.ResourceActionNoop),
		planned(block(`  interval = "60s"`), plancheck.ResourceActionUpdate),
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"interval"}},
		resource.TestStep{Config: block(`  interval = "60s"`), ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID},
	)
	if _, err := s.Schedule(context.Background(), "sweep"); driver.CodeOf(err) != driver.CodeNotFound {
		t.Errorf("after destroy: %v", err)
	}
}

func TestAccAScheduleRemovedOutsideIsPlannedAgain(t *testing.T) {
	t.Parallel()
	provider, s := world(t)
	again := planned(block(`  interval = "1m"`), plancheck.ResourceActionCreate)
	again.PreConfig = func() {
		if err := s.DeleteSchedule(context.Background(), "sweep"); err != nil {
			t.Error(err)
		}
	}
	run(t, provider, resource.TestStep{Config: block(`  interval = "1m"`)}, again)
}

func TestAccAScheduleChangedOutsideIsPutRight(t *testing.T) {
	t.Parallel()
	provider, s := world(t)
	again := planned(block(`  interval = "1m"`), plancheck.ResourceActionUpdate)
	again.PreConfig = func() {
		if _, err := s.PutSchedule(context.Background(), driver.Schedule{Name: "sweep", Interval: time.Hour, DryRun: true}); err != nil {
			t.Error(err)
		}
	}
	again.Check = func(*stateOf) error { return runs(s, driver.Schedule{Name: "sweep", Interval: time.Minute}) }
	run(t, provider, resource.TestStep{Config: block(`  interval = "1m"`)}, again)
}

func TestAccTwoWorkspacesWithOneNameDoNotTakeEachOthersSchedule(t *testing.T) {
	t.Parallel()
	provider, s := world(t)
	if _, err := s.PutSchedule(t.Context(), driver.Schedule{Name: "sweep", Interval: time.Hour}); err != nil {
		t.Fatal(err)
	}
	run(t, provider, resource.TestStep{Config: block(`  interval = "1m"`), ExpectError: regexp.MustCompile(`(?s)there is a schedule "sweep" already.*terraform import`)})
	if err := runs(s, driver.Schedule{Name: "sweep", Interval: time.Hour}); err != nil {
		t.Error(err)
	}
	if err := s.DeleteSchedule(t.Context(), "sweep"); err != nil {
		t.Fatal(err)
	}
}

func TestAccBadInputIsRefusedOnItsAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, more, want string }{
		{"neither interval nor cron", ``, `(?s)interval.*cron`},
		{"both interval and cron", "  interval = \"1m\"\n  cron = \"* * * * *\"", `(?s)interval.*cron`},
		{"below a second", `  interval = "500ms"`, `Duration out of bounds`},
		{"zero", `  interval = "0s"`, `Duration out of bounds`},
		{"a cron that is none", `  cron = "every day"`, `(?s)cron.*five fields`},
		{"a negative age", "  interval = \"1m\"\n  max_age = \"-1h\"", `Duration out of bounds`},
		{"a backend not configured", "  interval = \"1m\"\n  backend = \"cloud\"", `(?s)backend.*not\s+configured`},
		{"an import of another backend", "import", `not\s+configured`},
		{"an import without a backend", "import", `Not an import id`},
		{"an import of nothing", "import", `no schedule`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			provider, _ := world(t)
			step := resource.TestStep{Config: block(c.more), PlanOnly: true, ExpectError: regexp.MustCompile(c.want)}
			if c.more == "import" {
				id := map[string]string{"an import of another backend": "cloud/sweep", "an import without a backend": "sweep", "an import of nothing": "memory/sweep"}[c.name]
				step = resource.TestStep{Config: block(`  interval = "1m"`), ResourceName: at, ImportState: true, ImportStateId: id, ExpectError: regexp.MustCompile(c.want)}
			}
			run(t, provider, step)
		})
	}
}

func TestAccAnIntervalNotKnownYetIsPutInTheApply(t *testing.T) {
	t.Parallel()
	provider, _ := world(t)
	conf := "resource \"terraform_data\" \"u\" {\n  input = \"1m\"\n}\n" + block(`  interval = terraform_data.u.output`)
	run(t, provider, resource.TestStep{Config: conf}, planned(conf, plancheck.ResourceActionNoop))
}

func TestAccAnotherNameIsAnotherSchedule(t *testing.T) {
	t.Parallel()
	provider, _ := world(t)
	other := "resource \"sandboxio_reaper_schedule\" \"s\" {\n  name = \"other\"\n  interval = \"1m\"\n}\n"
	next := planned(other, plancheck.ResourceActionDestroyBeforeCreate)
	next.Check = resource.TestCheckResourceAttr(at, "id", "memory/other")
	run(t, provider, resource.TestStep{Config: block(`  interval = "1m"`)}, next)
}
