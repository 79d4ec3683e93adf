package template_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

const (
	image = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	at    = "sandboxio_template.t"
)

// block is a template with what the policy requires, and more.
func block(more string) string {
	return fmt.Sprintf("resource \"sandboxio_template\" \"t\" {\n  name   = \"python\"\n  image  = %q\n  reaper = \"sweep\"\n%s\n}\n", image, more)
}

func one(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	_, provider := acctest.World(t)
	for i := range steps {
		if steps[i].Config != "" {
			steps[i].Config = provider + steps[i].Config
		}
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func parsed(check func(*sandbox.Template) error) resource.TestCheckFunc {
	return resource.TestCheckResourceAttrWith(at, "manifest", func(manifest string) error {
		tpl, err := sandbox.ParseTemplate([]byte(manifest))
		if err != nil {
			return err
		}
		return check(tpl)
	})
}

func TestAccTheManifestIsKnownInThePlanAndReadByTheRuntime(t *testing.T) {
	t.Parallel()
	one(t,
		resource.TestStep{
			Config: block(`  lifetime = "90s"
  env      = { MODE = "test" }
  secrets  = ["API_TOKEN"]
  trust    = "trusted"
  trust_reason = "our own tests"
  network_policy = { egress = [{ host = "PyPI.org.", ports = [443], why = "packages" }] }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(at, tfjsonpath.New("manifest"), knownvalue.StringRegexp(regexp.MustCompile(`"lifetime_seconds":90`))),
				plancheck.ExpectKnownValue(at, tfjsonpath.New("digest"), knownvalue.StringRegexp(regexp.MustCompile(`^sha256:[0-9a-f]{64}$`))),
			}},
			Check: parsed(func(tpl *sandbox.Template) error {
				if len(tpl.Network.Egress) != 1 || tpl.Network.Egress[0].String() != "pypi.org:443" || tpl.Policy == "" || tpl.Backend != "memory" || tpl.Reaper != "sweep" {
					return fmt.Errorf("manifest holds %+v", tpl)
				}
				return nil
			}),
		},
		resource.TestStep{Config: block(`  lifetime = "90s"
  env      = { MODE = "test" }
  secrets  = ["API_TOKEN"]
  trust    = "trusted"
  trust_reason = "our own tests"
  network_policy = { egress = [{ host = "PyPI.org.", ports = [443], why = "packages" }] }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}

func TestAccM18AnAbsentNetworkReachesNothing(t *testing.T) { // langfuse/langfuse#16643
	t.Parallel()
	one(t, resource.TestStep{Config: block(""), Check: parsed(func(tpl *sandbox.Template) error {
		if len(tpl.Network.Egress) != 0 {
			return fmt.Errorf("egress is %v", tpl.Network.Egress)
		}
		return nil
	})})
}

// With M18's, that they all mean deny.
func TestAccM19LeftOutNullAndEmptyAreTheSame(t *testing.T) {
	t.Parallel()
	nothing := plancheck.ExpectEmptyPlan()
	step := func(more string) resource.TestStep {
		return resource.TestStep{Config: block(more), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{nothing}}}
	}
	one(t,
		resource.TestStep{Config: block("")},
		step("  env = {}\n  secrets = []\n  labels = {}\n  network_policy = { egress = [] }"),
		step("  env = null\n  secrets = null\n  labels = null\n  network_policy = null\n  resources = {}"),
		step("  lifetime = \"300s\"\n  network_policy = { egress = null, expose = [] }"),
	)
}

func TestAccAReorderedAllowlistKeepsTheManifest(t *testing.T) {
	t.Parallel()
	digest := statecheck.CompareValue(same{})
	step := func(rules string) resource.TestStep {
		return resource.TestStep{Config: block("  network_policy = { egress = [" + rules + "] }"),
			ConfigStateChecks: []statecheck.StateCheck{digest.AddStateValue(at, tfjsonpath.New("digest"))}}
	}
	one(t,
		step(`{ host = "a.example.com" }, { cidr = "203.0.113.0/24", ports = [443, 80] }`),
		step(`{ cidr = "203.0.113.9/24", ports = [80, 443] }, { host = "A.EXAMPLE.com." }`),
	)
}

func TestAccDenialsPointAtTheAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, more, want string }{
		{"all addresses", `network_policy = { egress = [{ host = "a.example.com" }, { cidr = "0.0.0.0/0" }] }`, `(?s)SBX-NET-002.*line 20.*network_policy = .*0\.0\.0\.0/0.*Attribute: network_policy.egress\[1\].cidr.*Fix:`},
		{"metadata", `network_policy = { egress = [{ cidr = "169.254.169.254/32" }] }`, `(?s)SBX-NET-004.*Attribute: network_policy.egress\[0\].*Fix:`},
		{"a key in the environment", `env = { CONFIG = "AKIA` + `IOSFODNN7EXAMPLQ" }`, `(?s)SBX-SEC-002.*line 20.*Attribute: env\["CONFIG"\]`},
		{"too long a life", `lifetime = "720h"`, `(?s)SBX-RES-001.*line 20.*Attribute: lifetime.*Fix:`},
		{"no reaper", `labels = {}`, `SBX-LIF-001`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conf := block("  " + c.more)
			if c.name == "no reaper" {
				conf = strings.Replace(conf, `reaper = "sweep"`, "", 1)
			}
			one(t, resource.TestStep{Config: conf, PlanOnly: true, ExpectError: regexp.MustCompile(c.want)})
		})
	}
}

func TestAccBadInputIsRefusedOnItsAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, more, want string }{
		{"a lifetime of zero", `lifetime = "0s"`, `(?s)Duration out of bounds.*for\s+ever`},
		{"a negative lifetime", `lifetime = "-5m"`, `Duration out of bounds`},
		{"an unknown tier", `isolation = "vm"`, `isolation`},
		{"trust without a reason", `trust = "trusted"`, `(?s)trust.*needs a\s+reason`},
		{"a reason without trust", `trust_reason = "because"`, `(?s)belongs to trust.*Attribute: trust`},
		{"a host that is an address", `network_policy = { egress = [{ host = "10.0.0.1" }] }`, `(?s)network_policy.*looks like\s+an address.*Fix`},
		{"a host and a range", `network_policy = { egress = [{ host = "a.example.com", cidr = "203.0.113.0/24" }] }`, `exactly one`},
		{"a port out of range", `network_policy = { egress = [{ host = "a.example.com", ports = [0] }] }`, `(?s)between 1\s+and 65535`},
		{"a cap too small", `resources = { pids = 1 }`, `(?s)pids.*not between`},
		{"a name that is also a secret", "env = { A = \"x\" }\n  secrets = [\"A\"]", `also in\s+env`},
		{"a reserved label", `labels = { "sandboxio.owner" = "me" }`, `reserved`},
		{"a backend not configured", `backend = "cloud"`, `(?s)backend.*not\s+configured`},
		{"a tier the backend has not", `isolation = "microvm"`, `(?s)isolation.*floor`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one(t, resource.TestStep{Config: block("  " + c.more), PlanOnly: true, ExpectError: regexp.MustCompile(c.want)})
		})
	}
}

const unknowns = "resource \"terraform_data\" \"u\" {\n  input = %s\n}\n"

func TestAccAllUnknownInThePlanIsDecidedInTheApply(t *testing.T) {
	t.Parallel()
	conf := `
resource "terraform_data" "u" {
  input = { image = "` + image + `", life = "2m", env = { A = "b" }, rules = [{ host = "a.example.com" }], res = { pids = 64 }, reaper = "sweep", secrets = ["S"], labels = { l = "m" } }
}
resource "sandboxio_template" "t" {
  name      = "all-unknown"
  image     = terraform_data.u.output.image
  lifetime  = terraform_data.u.output.life
  env       = terraform_data.u.output.env
  secrets   = terraform_data.u.output.secrets
  labels    = terraform_data.u.output.labels
  resources = terraform_data.u.output.res
  reaper    = terraform_data.u.output.reaper
  network_policy = { egress = terraform_data.u.output.rules }
}
`
	one(t,
		resource.TestStep{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue(at, tfjsonpath.New("manifest"))}},
			Check: parsed(func(tpl *sandbox.Template) error {
				if tpl.Resources.PIDs != 64 || tpl.Resources.MemoryMiB != 512 || len(tpl.Network.Egress) != 1 {
					return fmt.Errorf("manifest holds %+v", tpl)
				}
				return nil
			})},
		resource.TestStep{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}

func TestAccAnUnknownValueThatTurnsOutDeniedIsDeniedBeforeCreation(t *testing.T) {
	t.Parallel()
	one(t, resource.TestStep{
		Config:      fmt.Sprintf(unknowns, `"0.0.0.0/0"`) + block("  network_policy = { egress = [{ cidr = terraform_data.u.output }] }"),
		ExpectError: regexp.MustCompile(`SBX-NET-002`),
	})
}

func TestAccARuleThatIsDeniedWhateverTheUnknownIsDeniesInThePlan(t *testing.T) {
	t.Parallel()
	one(t, resource.TestStep{
		Config:   fmt.Sprintf(unknowns, `"a.example.com"`) + block(`  network_policy = { egress = [{ host = terraform_data.u.output }, { cidr = "0.0.0.0/0" }] }`),
		PlanOnly: true, ExpectError: regexp.MustCompile(`SBX-NET-002`),
	})
}

func TestAccImportByManifestThenAnEmptyPlan(t *testing.T) {
	t.Parallel()
	conf := block(`  lifetime = "3600s"
  trust = "trusted"
  trust_reason = "ours"
  profile = "strict"
  env = { A = "b" }
  secrets = ["S", "T"]
  resources = { memory_mib = 1024 }
  network_policy = { egress = [{ cidr = "203.0.113.0/24", ports = [80, 443] }, { host = "a.example.com", ports = [443], why = "x" }] }`)
	manifest := func(s *terraform.State) (string, error) {
		return s.RootModule().Resources[at].Primary.Attributes["manifest"], nil
	}
	one(t,
		resource.TestStep{Config: conf},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateIdFunc: manifest,
			ImportStateVerifyIgnore: []string{"lifetime"}}, // "3600s" is read back as "1h"
		resource.TestStep{Config: conf, ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateIdFunc: manifest},
	)
}

func TestAccAnImportIsJudgedLikeACreation(t *testing.T) {
	t.Parallel()
	tpl := sandbox.Template{Name: "python", Image: image, Reaper: "sweep", Backend: "memory", Lifetime: 700 * 3600e9}
	manifest, err := tpl.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	one(t, resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: string(manifest), ExpectError: regexp.MustCompile(`SBX-RES-001`)})
}

func TestAccAnImportOfSomethingElseSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	one(t, resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: "python", ExpectError: regexp.MustCompile(`(?s)Not a manifest.*Fix`)})
}

func TestAccATightenedPolicyWarnsAboutWhatExistsAndDeniesWhatChanges(t *testing.T) {
	t.Parallel()
	dir := acctest.Lifetimes(t, 60)
	_, plain := acctest.World(t)
	tight := strings.Replace(plain, "provider \"sandboxio\" {", fmt.Sprintf("provider \"sandboxio\" {\n  policy {\n    sources = { strict = %q }\n  }", dir), 1)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: plain + block(`  lifetime = "2m"`)},
		{Config: tight + block(`  lifetime = "120s"`), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
		{Config: tight + block(`  lifetime = "3m"`), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)ACME-001.*-refresh=false`)},
		{Config: tight + block(`  lifetime = "30s"`)},
	}})
}

func TestAccTwoTemplatesByForEachOverBackends(t *testing.T) {
	t.Parallel()
	_, provider := acctest.World(t)
	provider = strings.Replace(provider, "provider \"sandboxio\" {", "provider \"sandboxio\" {\n  default_backend = \"memory\"\n  docker {\n    host = \"unix:///nowhere/docker.sock\"\n  }", 1)
	w := acctest.NewWorkspace(t, sandboxio.Options{}, provider+block("  for_each = toset([\"docker\", \"memory\"])\n  backend = each.key")+`
output "backends" {
  value = [for t in sandboxio_template.t : jsondecode(t.manifest).backend]
}
`)
	w.Apply(t)
	w.Empty(t)
	if got := w.Must(t, "output", "-json", "backends"); !strings.Contains(got, `["docker","memory"]`) {
		t.Errorf("the manifests name %s", got)
	}
	w.Destroy(t)
}

func TestAccAProviderNotKnownYetPlansAndJudgesInTheApply(t *testing.T) {
	t.Parallel()
	acctest.World(t)
	world := acctest.WorldName(t)
	conf := "resource \"terraform_data\" \"w\" {\n  input = \"" + world + "\"\n}\nprovider \"sandboxio\" {\n  memory {\n    world = terraform_data.w.output\n  }\n}\n" + block("")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue(at, tfjsonpath.New("manifest"))}}},
		{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	}})
}

func TestAccMovedIsNoChange(t *testing.T) {
	t.Parallel()
	moved := strings.Replace(block(""), `"t"`, `"moved"`, 1) + "moved {\n  from = sandboxio_template.t\n  to = sandboxio_template.moved\n}\n"
	one(t, resource.TestStep{Config: block("")},
		resource.TestStep{Config: moved, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("sandboxio_template.moved", plancheck.ResourceActionNoop)}}})
}

func TestAccRequiredVariablesFlowIn(t *testing.T) {
	t.Parallel()
	_, provider := acctest.World(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:          provider + "variable \"image\" {\n  type = string\n}\n" + strings.Replace(block(""), `"`+image+`"`, "var.image", 1),
		ConfigVariables: config.Variables{"image": config.StringVariable(image)},
		Check:           resource.TestCheckResourceAttr(at, "image", image),
	}}})
}
