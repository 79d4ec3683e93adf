package policyfindings_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const image = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

func manifest(t *testing.T, change func(*sandbox.Template)) string {
	t.Helper()
	tpl := sandbox.Template{
		Name: "python", Backend: "memory", Image: image, Trust: driver.Trusted("built from our own repository"), Reaper: "sweep",
		Labels: map[string]string{"owner": "data", "tenant": "acme"},
	}
	change(&tpl)
	raw, err := tpl.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func forking(t *sandbox.Template) { t.Resources.PIDs = 2000 }

func config(block, manifest string) string {
	return fmt.Sprintf("provider \"sandboxio\" {\n  memory {}\n%s}\nlocals {\n  manifest = %q\n}\n", block, manifest) +
		"data \"sandboxio_policy_findings\" \"f\" {\n  manifest = local.manifest\n}\n" +
		"output \"data\" {\n  value = data.sandboxio_policy_findings.f\n}\noutput \"function\" {\n  value = provider::sandboxio::policy_findings(local.manifest)\n}\n"
}

type finding struct {
	Rule, Severity, Effect, Path, Remediation, Page string
	Waiver                                          *struct{ ID, Owner, Reason, Expires string }
}

type outputs struct {
	Data struct {
		Value struct {
			Decision, Policy, Backend string
			Rules                     []string
			Findings                  []finding
		}
	}
	Function struct{ Value []finding }
}

func read(t *testing.T, w *acctest.Workspace) outputs {
	t.Helper()
	w.Apply(t)
	raw := w.Must(t, "output", "-json")
	var o outputs
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return o
}

func said(all []finding) []string {
	out := []string{}
	for _, f := range all {
		out = append(out, f.Rule+" "+f.Effect+" "+f.Path)
	}
	return out
}

func TestAccTheFindingsOfAManifestAreToldAndRefuseNothing(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, provider.Options{}, config("", manifest(t, forking)))
	o := read(t, w)
	if d := o.Data.Value; d.Decision != "deny" || d.Backend != "memory" || !strings.HasPrefix(d.Policy, "sha256:") ||
		!slices.Contains(d.Rules, "SBX-RES-005") || !slices.Contains(said(d.Findings), "SBX-RES-005 deny resources.pids") {
		t.Errorf("the data source says %+v", d)
	}
	if got := said(o.Function.Value); !slices.Contains(got, "SBX-RES-005 deny resources.pids") || !slices.Contains(got, "SBX-ISO-001 unknown isolation") {
		t.Errorf("the function says %q", got)
	}
	for _, f := range append(o.Function.Value, o.Data.Value.Findings...) {
		if f.Severity == "" || f.Remediation == "" || !strings.HasSuffix(f.Page, f.Rule+".md") {
			t.Errorf("incomplete: %+v", f)
		}
	}
	w.Write(t, "main.tf", config("", manifest(t, func(*sandbox.Template) {})))
	if o = read(t, w); o.Data.Value.Decision != "allow" || len(o.Data.Value.Findings) > 0 {
		t.Errorf("a good manifest: %+v", o.Data.Value)
	}
}

// The data source judges by the provider's whole policy, the function by the
// built-in rules alone, since it knows nothing but its argument.
func TestAccTheFunctionKnowsNothingOfTheProvidersPolicy(t *testing.T) {
	t.Parallel()
	until := time.Now().UTC().AddDate(0, 0, 9).Format(time.DateOnly)
	block := fmt.Sprintf(`  policy {
    params  = { max_pids = 1500 }
    sources = { strict = %q }
    waivers = [{
      id = "W-1", rule = "SBX-RES-005", target = { name = "python" }, path = "resources.pids", value = "2000",
      reason = "the build forks once for each package", owner = "team-build", expires = %q
    }]
  }
`, acctest.Lifetimes(t, 60), until)
	o := read(t, acctest.NewWorkspace(t, provider.Options{}, config(block, manifest(t, forking))))
	d := o.Data.Value
	if d.Decision != "deny" || !slices.Contains(said(d.Findings), "ACME-001 deny lifetime_seconds") || !slices.Contains(said(d.Findings), "SBX-RES-005 waived resources.pids") {
		t.Errorf("the data source says %q", said(d.Findings))
	}
	i := slices.IndexFunc(d.Findings, func(f finding) bool { return f.Effect == "waived" })
	if i < 0 || d.Findings[i].Waiver == nil || d.Findings[i].Waiver.ID != "W-1" || d.Findings[i].Waiver.Owner != "team-build" {
		t.Errorf("%+v", d.Findings)
	}
	if got := said(o.Function.Value); !slices.Contains(got, "SBX-RES-005 deny resources.pids") || strings.Contains(strings.Join(got, " "), "ACME") {
		t.Errorf("the function says %q", got)
	}
}

func TestAccTheFunctionNeedsNoProviderBlockAndNoFloor(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, fmt.Sprintf("output \"f\" {\n  value = join(\",\", provider::sandboxio::policy_findings(%q)[*].rule)\n}\n",
		manifest(t, func(tpl *sandbox.Template) { tpl.Image = "" })))
	w.Env = append(w.Env, "SANDBOXIO_POLICY_FLOOR=/nowhere/floor.tar.gz", "SANDBOXIO_POLICY_FLOOR_KEY=/nowhere/floor.pub")
	w.Apply(t)
	if got := w.Output(t, "f"); !strings.Contains(got, "SBX-IMG-001") || !strings.Contains(got, "SBX-ISO-001") {
		t.Errorf("says %q", got)
	}
}

func TestAccWhatIsNoManifestIsRefused(t *testing.T) {
	t.Parallel()
	_, block := acctest.World(t)
	step := func(config, want string) resource.TestStep {
		return resource.TestStep{Config: block + config, PlanOnly: true, ExpectError: regexp.MustCompile(want)}
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		step("data \"sandboxio_policy_findings\" \"f\" {\n  manifest = \"{}\"\n}\n", `(?s)Not a manifest.*Fix`),
		step(fmt.Sprintf("data \"sandboxio_policy_findings\" \"f\" {\n  manifest = %q\n  backend = \"cloud\"\n}\n", manifest(t, forking)), `(?s)"cloud" is not configured.*Fix`),
		step("output \"f\" {\n  value = provider::sandboxio::policy_findings(\"{}\")\n}\n", `(?s)not a manifest`),
	}})
}
