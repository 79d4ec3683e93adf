package networkpolicy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

const at = "sandboxio_network_policy.n"

func block(rules string) string {
	return fmt.Sprintf("resource \"sandboxio_network_policy\" \"n\" {\n  name = \"pypi\"\n  egress = [\n%s\n  ]\n}\n", rules)
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

func noop(config string) resource.TestStep {
	return resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}}
}

func TestAccTheCanonicalFormIsSortedMergedAndInASCII(t *testing.T) {
	t.Parallel()
	conf := block(`{ host = "BÜCHER.example." }, { host = "a.example.com", ports = [443] }, { host = "A.example.com", ports = [80] }, { cidr = "203.0.113.7/24", ports = [8443, 443], why = "mirror" }`)
	rule := func(host, cidr, why knownvalue.Check, ports ...int64) knownvalue.Check {
		set := make([]knownvalue.Check, len(ports))
		for i, p := range ports {
			set[i] = knownvalue.Int64Exact(p)
		}
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"host": host, "cidr": cidr, "why": why, "ports": knownvalue.SetExact(set)})
	}
	null := knownvalue.Null()
	want := knownvalue.ListExact([]knownvalue.Check{
		rule(null, knownvalue.StringExact("203.0.113.0/24"), knownvalue.StringExact("mirror"), 443, 8443),
		rule(knownvalue.StringExact("a.example.com"), null, null, 80, 443),
		rule(knownvalue.StringExact("xn--bcher-kva.example"), null, null, 80, 443),
	})
	canonical := tfjsonpath.New("canonical").AtMapKey("egress")
	one(t, resource.TestStep{
		Config:            conf,
		ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(at, canonical, want)}},
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(at, canonical, want)},
	}, noop(conf))
}

// A list that is left out, null or empty allows nothing, and is one policy (M18, M19).
func TestAccM19NoListNullAndEmptyAllDeny(t *testing.T) {
	t.Parallel()
	conf := func(egress string) string {
		return "resource \"sandboxio_network_policy\" \"n\" {\n  name = \"n\"\n" + egress + "\n}\n" +
			"output \"allowed\" { value = provider::sandboxio::egress_allows(sandboxio_network_policy.n.canonical.egress, \"example.com:443\") }\n"
	}
	denies := []statecheck.StateCheck{
		statecheck.ExpectKnownValue(at, tfjsonpath.New("canonical").AtMapKey("egress"), knownvalue.ListExact(nil)),
		statecheck.ExpectKnownValue(at, tfjsonpath.New("mechanisms"), knownvalue.MapExact(map[string]knownvalue.Check{"memory": by(nil)})),
		statecheck.ExpectKnownOutputValue("allowed", knownvalue.Bool(false)),
	}
	steps := []resource.TestStep{{Config: conf(""), ConfigStateChecks: denies}}
	for _, same := range []string{"  egress = null", "  egress = []", "  egress = [], mode = null", "  egress = null\n  expose = []\n  learn = null"} {
		step := noop(conf(strings.ReplaceAll(same, ", ", "\n  ")))
		step.ConfigStateChecks = denies
		steps = append(steps, step)
	}
	one(t, steps...)
}

func TestAccOrderAndCaseChangeNothingThatTemplatesSee(t *testing.T) {
	t.Parallel()
	tpl := `
resource "sandboxio_template" "t" {
  name           = "t"
  image          = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  reaper         = "sweep"
  network_policy = sandboxio_network_policy.n.canonical
}
`
	one(t,
		resource.TestStep{Config: block(`{ host = "a.example.com" }, { host = "b.example.com" }`) + tpl},
		resource.TestStep{
			Config: block(`{ host = "B.Example.COM" }, { host = "a.example.com.", ports = [443, 80] }`) + tpl,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("sandboxio_template.t", plancheck.ResourceActionNoop),
			}},
		},
	)
}

func TestAccNestedEntriesAddedRemovedAndReordered(t *testing.T) { // hashicorp/terraform-plugin-framework#1197
	t.Parallel()
	a, b, c := `{ host = "a.example.com" }`, `{ host = "b.example.com", ports = [443], why = "b" }`, `{ cidr = "203.0.113.0/24" }`
	one(t,
		resource.TestStep{Config: block(a)}, resource.TestStep{Config: block(a + "," + b)}, resource.TestStep{Config: block(c + "," + b + "," + a)},
		resource.TestStep{Config: block(b)}, resource.TestStep{Config: block("")}, noop(block("")),
	)
}

func TestAccDenialsPointAtTheRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rules, want string }{
		{"all addresses", `{ host = "a.example.com" },` + "\n" + `{ cidr = "::/0" }`, `(?s)SBX-NET-002.*line 20.*::/0.*Attribute: egress\[1\].cidr`},
		{"metadata by a wide range", `{ cidr = "169.254.0.0/16" }`, `(?s)SBX-NET-004.*egress\[0\]`},
		{"no host", `{ host = "*" }`, `(?s)wildcard.*Attribute: egress\[0\].host.*Fix`},
		{"a host with a port", `{ host = "example.com:443" }`, `(?s)"example.com:443" has a port.*egress\[0\].host.*Fix: write the host alone, as "example.com", and 443\s+in\s+ports`},
		{"a CIDR with a port", `{ cidr = "203.0.113.0/24:443" }`, `(?s)has a\s+port.*egress\[0\].cidr.*Fix: write the CIDR alone`},
		{"an address as a host", `{ host = "2001:db8::1" }`, `(?s)"2001:db8::1" is an\s+address.*Fix: give it as a CIDR`},
		{"an empty list of ports", `{ host = "example.com", ports = [] }`, `(?s)the list of\s+ports is empty.*egress\[0\].ports.*Fix:.*leave ports\s+out for\s+80\s+and\s+443`},
		{"neither", `{ why = "nothing" }`, `exactly one of`},
		{"two problems at once", `{ host = "http://a.example.com" }, { cidr = "10.0.0.0/99" }`, `(?s)egress\[0\].host.*egress\[1\].cidr`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one(t, resource.TestStep{Config: block(c.rules), PlanOnly: true, ExpectError: regexp.MustCompile(c.want)})
		})
	}
}

// TestAccValidateRefusesWhatIsWritten asks terraform validate alone: nothing of
// it is planned.
func TestAccValidateRefusesWhatIsWritten(t *testing.T) {
	t.Parallel()
	const u = "resource \"terraform_data\" \"u\" {}\n"
	w := acctest.NewWorkspace(t, provider.Options{}, u+block(`{ host = terraform_data.u.output }`))
	w.Must(t, "validate", "-no-color") // what is not known is left to the plan
	for _, c := range []struct{ name, rules, want string }{
		{"every host", `{ host = "a.example.com" },` + "\n" + `{ host = "*" }`, `(?s)wildcard.*Attribute: egress\[1\].host.*Fix.*Code: invalid`},
		{"a URL", `{ host = "https://a.example.com" }`, `(?s)egress\[0\].host`},
		{"a single label", `{ host = "localhost" }`, `(?s)egress\[0\].host`},
		{"neither", `{}`, `(?s)exactly one of.*egress\[0\]`},
		{"both", `{ host = "a.example.com", cidr = "203.0.113.0/24" }`, `(?s)exactly one of.*egress\[0\]`},
		{"no port", `{ host = "a.example.com", ports = [65536] }`, `(?s)65536.*Attribute: egress\[0\].ports.*Fix.*Code: invalid`},
		{"beside what is not known", `{ host = terraform_data.u.output }, { host = "*" }`, `(?s)Attribute: egress\[1\].host`},
		{"in a template", "]\n}\nresource \"sandboxio_template\" \"t\" {\n name = \"t\"\n network_policy = { egress = [{ cidr = \"10.0.0.0/99\" }] }\n secrets = [", `(?s)Attribute: network_policy.egress\[0\].cidr`},
		{"a mode", "]\n  mode = \"fast\"\n expose = [", `(?s)"fast" is no mode.*Attribute: mode.*Fix: use\s+"transparent"\s+or\s+"proxy".*Code: invalid`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.Write(t, "main.tf", u+block(c.rules))
			out, err := w.Terraform(t, "validate", "-no-color")
			if err == nil || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestAccAnUnknownRuleLeavesTheCanonicalFormUnknown(t *testing.T) {
	t.Parallel()
	conf := "resource \"terraform_data\" \"u\" {\n  input = \"a.example.com\"\n}\n" + block(`{ host = terraform_data.u.output }`)
	one(t,
		resource.TestStep{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue(at, tfjsonpath.New("canonical"))}}},
		noop(conf),
	)
}

func TestAccImportThenAnEmptyPlan(t *testing.T) {
	t.Parallel()
	conf := block(`{ cidr = "203.0.113.0/24", ports = [443] }, { host = "a.example.com", ports = [80, 443], why = "x" }`)
	text := `{"name":"pypi","egress":[{"cidr":"203.0.113.0/24","ports":[443]},{"host":"a.example.com","ports":[80,443],"why":"x"}],"expose":[],"mode":"transparent","learn":false}`
	one(t,
		resource.TestStep{Config: conf},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateId: text},
		resource.TestStep{Config: conf, ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateId: text},
	)
}

func TestAccAnImportIsJudgedLikeACreation(t *testing.T) {
	t.Parallel()
	one(t, resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: `{"name":"all","egress":[{"host":"example.com","ports":"443"}]}`, ExpectError: regexp.MustCompile(`egress.ports:\s+a\s+string\s+stands\s+where\s+a\s+list\s+belongs`)})
	one(t, resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: `{"name":"all","egress":[{"host":"example.com","ports":[]}]}`, ExpectError: regexp.MustCompile(`the\s+list\s+of\s+ports\s+is\s+empty`)})
	one(t, resource.TestStep{Config: block(""), ResourceName: at, ImportState: true, ImportStateId: `{"name":"all","egress":[{"cidr":"0.0.0.0/0"}]}`, ExpectError: regexp.MustCompile(`SBX-NET-002`)})
}
