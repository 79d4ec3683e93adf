package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const at = "sandboxio_sandbox.s"

const template = `
resource "sandboxio_template" "t" {
  name     = "pet"
  image    = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  lifetime = "10m"
  reaper   = "sweep"
  env      = { MODE = "test" }
  secrets  = ["API_TOKEN"]
}
`

func block(more string) string {
	if !strings.Contains(more, "lifetime") {
		more = "  lifetime = \"5m\"\n" + more
	}
	return template + "resource \"sandboxio_sandbox\" \"s\" {\n  template = sandboxio_template.t.manifest\n" + more + "\n}\n"
}

func planned(config string, action plancheck.ResourceActionType) resource.TestStep {
	return resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(at, action)}}}
}

func TestAccASandboxLivesAndItsDestroyIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := planned(block("  env = { A = \"b\" }\n  labels = { team = \"ml\" }"), plancheck.ResourceActionCreate)
	first.Check = resource.ComposeTestCheckFunc(
		resource.TestCheckResourceAttr(at, "status", "running"), resource.TestCheckResourceAttr(at, "isolation", "unverified"),
		resource.TestCheckResourceAttrSet(at, "deadline"), resource.TestCheckResourceAttrSet(at, "evidence"),
		w.only(func(st driver.Status) error {
			if !st.Detached || st.Facts.Template == "" || st.Facts.Reaper != "sweep" || st.Labels["team"] != "ml" {
				return fmt.Errorf("the backend has %+v", st)
			}
			return nil
		}),
	)
	w.run(first, planned(block("  env = { A = \"b\" }\n  labels = { team = \"ml\" }\n  recreate_on_expiry = true"), plancheck.ResourceActionUpdate),
		planned(block("  env = { A = \"b\" }\n  labels = { team = \"ml\" }\n  recreate_on_expiry = true\n  lifetime = \"300s\""), plancheck.ResourceActionNoop))
}

func TestAccAStartCommandRunsWithItsSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(resource.TestStep{
		Config: block(`  start = { command = ["sha256", "API_TOKEN"], secrets_wo = { API_TOKEN = "` + canary + `" }, secrets_wo_version = 1 }`),
		Check:  resource.TestCheckNoResourceAttr(at, "start.secrets_wo.API_TOKEN"),
	},
		planned(block(`  start = { command = ["sha256", "API_TOKEN"], secrets_wo = { API_TOKEN = "`+canary+`-rotated" }, secrets_wo_version = 1 }`), plancheck.ResourceActionNoop),
		planned(block(`  start = { command = ["sha256", "API_TOKEN"], secrets_wo = { API_TOKEN = "`+canary+`-rotated" }, secrets_wo_version = 2 }`), plancheck.ResourceActionDestroyBeforeCreate),
	)
}

func TestAccWhatChangesASandboxReplacesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, more string }{
		{"another lifetime", `  lifetime = "6m"`}, {"another environment", `  env = { A = "c" }`}, {"another label", `  labels = { a = "b" }`},
		{"a command", `  start = { command = ["hang"] }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newWorld(t).run(resource.TestStep{Config: block("")}, planned(block(c.more), plancheck.ResourceActionDestroyBeforeCreate))
		})
	}
}

func TestAccAnotherTemplateReplacesAndAReformulatedOneDoesNot(t *testing.T) {
	t.Parallel()
	newWorld(t).run(
		resource.TestStep{Config: block("")},
		planned(strings.Replace(block(""), `"10m"`, `"600s"`, 1), plancheck.ResourceActionNoop),
		planned(strings.Replace(block(""), `"10m"`, `"11m"`, 1), plancheck.ResourceActionDestroyBeforeCreate),
	)
}

func TestAccKilledOutsideIsPlannedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	again := planned(block(""), plancheck.ResourceActionCreate)
	again.PreConfig = w.killAll
	w.run(resource.TestStep{Config: block("")}, again)
}

func TestAccStoppedIsNotGone(t *testing.T) { // kreuzwerker/terraform-provider-docker#590
	t.Parallel()
	w := newWorld(t)
	next := planned(block(""), plancheck.ResourceActionNoop)
	next.PreConfig = w.freezeAll
	next.Check = resource.TestCheckResourceAttr(at, "status", "paused")
	w.run(resource.TestStep{Config: block("")}, next)
}

func TestAccExpiredStaysWithAnEmptyPlanUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expired := resource.TestStep{Config: block(`  lifetime = "1s"`), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}, PreConfig: w.untilEmpty}
	expired.Check = resource.TestCheckResourceAttr(at, "status", "expired")
	toggled := planned(block("  lifetime = \"1s\"\n  recreate_on_expiry = true"), plancheck.ResourceActionDestroyBeforeCreate)
	toggled.ConfigPlanChecks.PreApply = append(toggled.ConfigPlanChecks.PreApply, plancheck.ExpectUnknownValue(at, tfjsonpath.New("id")))
	// The new one expires as soon; the step's own last plan may see it so.
	toggled.ExpectNonEmptyPlan = false
	toggled.Config = strings.Replace(toggled.Config, `"1s"`, `"4m"`, 1)
	w.run(resource.TestStep{Config: block(`  lifetime = "1s"`)}, expired, toggled)
}

func TestAccRecreateOnExpiryAlonePlansAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := block("  lifetime = \"1s\"\n  recreate_on_expiry = true")
	w.run(resource.TestStep{Config: block("  lifetime = \"1s\"")},
		resource.TestStep{Config: short, PreConfig: w.untilEmpty, PlanOnly: true, ExpectNonEmptyPlan: true})
}

func TestAccDestroyOfWhatIsGoneSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(resource.TestStep{Config: block("")}, resource.TestStep{Config: block(""), PreConfig: func() {}})
	ws := acctest.NewWorkspace(t, w.options(), w.provider+block(""))
	ws.Apply(t)
	w.killAll()
	ws.Destroy(t, "-refresh=false")
}

func TestAccADaemonThatIsDownIsAnErrorAndNotGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ws := acctest.NewWorkspace(t, w.options(), w.provider+block(""))
	ws.Apply(t)
	before := string(ws.Read(t, "terraform.tfstate"))
	w.down.Store(true)
	for _, command := range [][]string{{"plan", "-no-color"}, {"destroy", "-auto-approve", "-no-color"}, {"destroy", "-auto-approve", "-no-color", "-refresh=false"}} {
		if out := ws.Deny(t, command...); !strings.Contains(out, "unavailable") || !strings.Contains(out, "start the daemon") {
			t.Errorf("terraform %v does not say what is wrong:\n%s", command, out)
		}
	}
	if after := string(ws.Read(t, "terraform.tfstate")); !strings.Contains(after, `"sandboxio_sandbox"`) || !strings.Contains(before, `"sandboxio_sandbox"`) {
		t.Error("the sandbox was forgotten")
	}
	w.down.Store(false)
	ws.Empty(t)
	ws.Destroy(t)
}

func TestAccAFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failStart.Store(true)
	w.run(resource.TestStep{Config: block(`  start = { command = ["hang"] }`), ExpectError: regexp.MustCompile(`(?s)Unable to create the sandbox.*Attribute: start`)})
	if left := w.world.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAccImportThenAnEmptyPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := func(s *terraform.State) (string, error) {
		return "memory/" + s.RootModule().Resources[at].Primary.ID, nil
	}
	w.run(
		resource.TestStep{Config: block("")},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateIdFunc: id, ImportStateVerifyIgnore: []string{"template"}}, // the backend knows its digest
		resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateIdFunc: id},
	)
}

// An engine's stamps are whole seconds, so that an import may read a lifetime
// of a second more. That must never replace what was imported, not even once
// the state has learnt the rest.
func TestAccAnImportIsNotReplacedForASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.late.Store(true)
	config := w.provider + block(`  labels = { job = "pet" }`) + "output \"id\" {\n  value = sandboxio_sandbox.s.id\n}\n"
	ws := acctest.NewWorkspace(t, w.options(), config)
	ws.Apply(t)
	id := ws.Output(t, "id")
	ws.Must(t, "state", "rm", at)
	ws.Must(t, "import", at, "memory/"+id)
	if state := string(ws.Read(t, "terraform.tfstate")); !strings.Contains(state, `"lifetime": "5m1s"`) {
		t.Fatal("the import reads no lifetime that is a second off, so this proves nothing")
	}
	if out := ws.Apply(t); !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
		t.Errorf("the labels are taken from the configuration, and the apply says:\n%s", out)
	}
	ws.Empty(t)
	if got := ws.Output(t, "id"); got != id {
		t.Errorf("%s was imported, and %s is there", id, got)
	}
	ws.Destroy(t)
}

func TestAccAnImportRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, id, want string }{
		{"a wrong backend", "cloud/abc", `not\s+configured`}, {"no backend", "abc", `Not an import id`}, {"nothing there", "memory/abc", `not-found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newWorld(t).run(resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: c.id, ExpectError: regexp.MustCompile(c.want)})
		})
	}
	t.Run("owned and without a template", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		rt := sandbox.New(w.backend, sandbox.Options{Unguarded: "a test of what Terraform refuses"})
		for _, detached := range []bool{false, true} {
			sb, err := rt.Create(t.Context(), sandbox.Spec{Detached: detached})
			if err != nil {
				t.Fatal(err)
			}
			w.run(resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: "memory/" + sb.ID(),
				ExpectError: regexp.MustCompile(`(?s)belongs to the program|not made from a\s+template`)})
			if err := sb.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whoever made it, an import is judged like a creation.
func TestAccAnImportOfWhatThePolicyDeniesNamesTheRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rt := sandbox.New(w.backend, sandbox.Options{Unguarded: "a test of what Terraform refuses"})
	tpl := sandbox.Template{Name: "old", Image: "python:3.12", Lifetime: 700 * time.Hour}
	sb, err := rt.Create(t.Context(), sandbox.Spec{Template: &tpl, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	w.run(resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: "memory/" + sb.ID(),
		ExpectError: regexp.MustCompile(`SBX-IMG-001`)})
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAccBadInputIsRefusedOnItsAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, more, want string }{
		{"longer than the template allows", `  lifetime = "11m"`, `(?s)longer than the\s+template.*Attribute: lifetime`},
		{"a lifetime of zero", `  lifetime = "0s"`, `Duration out of bounds`},
		{"no lifetime", `  # lifetime`, `(?s)argument "lifetime" is required`},
		{"a template's variable with another value", `  env = { MODE = "prod" }`, `(?s)template sets another value.*Attribute: env\["MODE"\]`},
		{"a secret as a plain variable", `  env = { API_TOKEN = "x" }`, `(?s)declares it as a secret.*env\["API_TOKEN"\]`},
		{"a secret that the template does not declare", `  start = { command = ["hang"], secrets_wo = { OTHER = "x" } }`, `(?s)does not declare this secret.*secrets_wo\["OTHER"\]`},
		{"a credential in the command's environment", `  start = { command = ["hang"], env = { CONFIG = "AKIA` + `IOSFODNN7EXAMPLQ" } }`, `(?s)Error: SBX-SEC-002.*Attribute: start.env\["CONFIG"\]`},
		{"a variable of the command named like a credential", `  start = { command = ["hang"], env = { DB_PASSWORD = "x" } }`, `(?s)Error: SBX-SEC-001.*Attribute: start.env\["DB_PASSWORD"\]`},
		{"a credential among the arguments", `  start = { command = ["echo", "--key", "AKIA` + `IOSFODNN7EXAMPLQ"] }`, `(?s)Error: SBX-SEC-002.*Attribute: start.command\[2\]`},
		{"a credential in the sandbox's environment", `  env = { CONFIG = "AKIA` + `IOSFODNN7EXAMPLQ" }`, `(?s)Error: SBX-SEC-002.*Attribute: env\["CONFIG"\]`},
		{"an empty command", `  start = { command = [] }`, `(?s)start.command`},
		{"a timeout of zero", `  start = { command = ["hang"], timeout = "0s" }`, `Duration out of bounds`},
		{"a name that is no variable", `  start = { command = ["hang"], env = { "A-B" = "x" } }`, `(?s)is not a variable\s+name.*start.env`},
		{"a proxy, and no owner to run it", `  lifetime = "5m"`, `(?s)detached sandbox has no\s+owner to run the proxy.*Fix: set mode\s+to\s+"transparent"`},
		{"a template that is no manifest", `  lifetime = "5m"`, `(?s)not a manifest.*Attribute: template`},
		{"a template that was changed by hand", `  lifetime = "5m"`, `(?s)digest.*Attribute: template`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conf := block(c.more)
			switch c.name {
			case "a proxy, and no owner to run it":
				conf = "resource \"sandboxio_network_policy\" \"n\" {\n  name = \"n\"\n  mode = \"proxy\"\n  egress = [{ host = \"a.example.com\", ports = [443] }]\n}\n" +
					strings.Replace(conf, `"10m"`, "\"10m\"\n  network_policy = sandboxio_network_policy.n.canonical", 1)
			case "a template that is no manifest":
				conf = strings.Replace(conf, "sandboxio_template.t.manifest", `"python"`, 1)
			case "a template that was changed by hand":
				conf = strings.Replace(conf, "sandboxio_template.t.manifest", `replace(sandboxio_template.t.manifest, "\"pids\":256", "\"pids\":4096")`, 1)
			}
			newWorld(t).run(resource.TestStep{Config: conf, PlanOnly: true, ExpectError: regexp.MustCompile(c.want)})
		})
	}
}

func TestAccATemplateNotKnownYetIsJudgedBeforeCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf := "resource \"terraform_data\" \"u\" {\n  input = \"sha256:2222222222222222222222222222222222222222222222222222222222222222\"\n}\n" +
		strings.Replace(block(""), `"sha256:1111111111111111111111111111111111111111111111111111111111111111"`, "terraform_data.u.output", 1)
	w.run(resource.TestStep{Config: conf}, planned(conf, plancheck.ResourceActionNoop))
}

func TestAccACredentialNotKnownYetIsRefusedBeforeCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(resource.TestStep{
		Config:      "resource \"terraform_data\" \"u\" {\n  input = \"AKIA" + "IOSFODNN7EXAMPLQ\"\n}\n" + block(`  start = { command = ["hang", terraform_data.u.output] }`),
		ExpectError: regexp.MustCompile(`(?s)Error: SBX-SEC-002.*Attribute: start.command\[1\]`),
	})
	if left := w.world.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAccReplaceMakesAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ws := acctest.NewWorkspace(t, w.options(), w.provider+block("")+"output \"id\" {\n  value = sandboxio_sandbox.s.id\n}\n")
	ws.Apply(t)
	first := ws.Output(t, "id")
	ws.Apply(t, "-replace="+at)
	if second := ws.Output(t, "id"); second == first || second == "" {
		t.Errorf("replaced %q by %q", first, second)
	}
	if _, err := w.backend.Attach(context.Background(), first); !errors.Is(err, driver.CodeGone) && !errors.Is(err, driver.CodeNotFound) {
		t.Errorf("the first is still there: %v", err)
	}
	ws.Destroy(t)
}

func TestAccATimeoutWhileItIsMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hang.Store(true)
	w.run(resource.TestStep{Config: block("  start = { command = [\"hang\"] }\n  timeouts = { create = \"1s\" }"), ExpectError: regexp.MustCompile(`(?s)Unable to create the sandbox.*deadline\s+exceeded`)})
	if left := w.world.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAccAnInterruptWhileItIsMadeLeavesNothing(t *testing.T) { // hashicorp/terraform#33358
	t.Parallel()
	w := newWorld(t)
	w.hang.Store(true)
	ws := acctest.NewWorkspace(t, w.options(), w.provider+block(`  start = { command = ["hang"] }`))
	done := make(chan string, 1)
	interrupt := ws.Background(t, done, "apply", "-auto-approve", "-no-color")
	<-w.starting
	if len(w.all()) != 1 {
		t.Error("there was nothing to leave behind")
	}
	interrupt()
	if said := <-done; !strings.Contains(said, "Interrupt received") || !strings.Contains(said, "Unable to create the sandbox") {
		t.Errorf("terraform says:\n%s", said)
	}
	if left := w.world.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	w.hang.Store(false)
	ws.Apply(t)
	ws.Destroy(t)
}

func TestAccATightenedPolicyStopsNeitherAPetNorItsDestroy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ws := acctest.NewWorkspace(t, w.options(), w.provider+block("")+"output \"id\" {\n  value = sandboxio_sandbox.s.id\n}\n")
	ws.Apply(t)
	id := ws.Output(t, "id")
	policy := func(limit int) string {
		dir := acctest.Lifetimes(t, limit)
		return strings.Replace(w.provider, "provider \"sandboxio\" {", fmt.Sprintf("provider \"sandboxio\" {\n  policy {\n    sources = { strict = %q }\n  }", dir), 1)
	}

	// Another policy that allows the template: a new manifest, the same pet.
	ws.Write(t, "main.tf", policy(3600)+block("")+"output \"id\" {\n  value = sandboxio_sandbox.s.id\n}\n")
	if out := ws.Apply(t); !strings.Contains(out, "0 added, 2 changed, 0 destroyed") {
		t.Errorf("a policy that allows it says:\n%s", out)
	}
	ws.Empty(t)
	if again := ws.Output(t, "id"); again != id {
		t.Errorf("the pet %s became %s", id, again)
	}

	// One that does not: warnings, and the configuration can still be
	// destroyed; a change is denied, and can be destroyed without a refresh.
	denying := policy(60)
	ws.Write(t, "main.tf", denying+block("")+"output \"id\" {\n  value = sandboxio_sandbox.s.id\n}\n")
	ws.Empty(t)
	if out := ws.Must(t, "plan", "-no-color"); !strings.Contains(out, "Warning: ACME-001") {
		t.Errorf("what is no longer allowed is not warned of:\n%s", out)
	}
	ws.Write(t, "main.tf", denying+strings.Replace(block(""), `"10m"`, `"9m"`, 1))
	if out := ws.Deny(t, "destroy", "-auto-approve", "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), "terraform destroy -refresh=false") {
		t.Errorf("the way out is not named:\n%s", out)
	}
	ws.Destroy(t, "-refresh=false")
	if left := w.world.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAccAProviderNotKnownYetKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := func(input string) string {
		return "resource \"terraform_data\" \"w\" {\n  input = " + input + "\n  triggers_replace = " + input + "\n}\n" +
			regexp.MustCompile(`world = "([^"]*)"`).ReplaceAllString(w.provider, `world = replace("$1", terraform_data.w.id, "")`) + block("")
	}
	ws := acctest.NewWorkspace(t, w.options(), config(`"1"`))
	ws.Apply(t, "-target=terraform_data.w")
	ws.Apply(t)
	ws.Empty(t)
	ws.Write(t, "main.tf", config(`"2"`))
	if out := ws.Apply(t); !strings.Contains(out, "1 added, 0 changed, 1 destroyed") {
		t.Errorf("a provider that is not known in the plan says:\n%s", out)
	}
	ws.Empty(t)
	ws.Destroy(t)
}
