package backend_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
)

func TestAccABackendTellsWhatItCanDoWithoutRunning(t *testing.T) {
	t.Parallel()
	_, provider := acctest.World(t)
	provider = strings.Replace(provider, "provider \"sandboxio\" {", "provider \"sandboxio\" {\n  default_backend = \"memory\"\n  docker {\n    host = \"unix:///nowhere/engine.sock\"\n  }", 1)
	is := func(name, attribute string, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.sandboxio_backend."+name, tfjsonpath.New(attribute), want)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: provider + "data \"sandboxio_backend\" \"default\" {}\ndata \"sandboxio_backend\" \"engine\" {\n  name = \"docker\"\n}\n",
		ConfigStateChecks: []statecheck.StateCheck{
			is("default", "name", knownvalue.StringExact("memory")), is("default", "simulated", knownvalue.Bool(true)),
			is("default", "isolation", knownvalue.StringExact("unverified")),
			is("default", "capabilities", knownvalue.SetPartial([]knownvalue.Check{knownvalue.StringExact("detach"), knownvalue.StringExact("schedule")})),
			is("default", "limits", knownvalue.ObjectPartial(map[string]knownvalue.Check{"default_lifetime": knownvalue.StringExact("5m"), "memory_mib": knownvalue.Int64Exact(512)})),
			is("engine", "isolation", knownvalue.StringExact("container")), is("engine", "simulated", knownvalue.Bool(false)),
		},
	}}})
}

func TestAccABackendThatIsNotConfiguredIsNamed(t *testing.T) {
	t.Parallel()
	_, provider := acctest.World(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: provider + "data \"sandboxio_backend\" \"b\" {\n  name = \"cloud\"\n}\n", PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)"cloud" is not configured.*Fix`),
	}}})
}

func TestAccAnAliasPerDaemon(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, `
provider "sandboxio" {
  memory {}
}
provider "sandboxio" {
  alias = "engine"
  docker {
    host = "unix:///nowhere/engine.sock"
  }
}
data "sandboxio_backend" "here" {}
data "sandboxio_backend" "there" {
  provider = sandboxio.engine
}
output "names" {
  value = "${data.sandboxio_backend.here.name} ${data.sandboxio_backend.there.name}"
}
`)
	w.Apply(t)
	if got := w.Output(t, "names"); got != "memory docker" {
		t.Errorf("the providers are of %s", got)
	}
}
