package egress_test

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
)

func run(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	_, provider := acctest.World(t)
	for i := range steps {
		steps[i].Config = provider + steps[i].Config
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccWordsBecomeRulesThatAPolicyTakes(t *testing.T) {
	t.Parallel()
	null := knownvalue.Null()
	rule := func(host, cidr knownvalue.Check, ports ...int64) knownvalue.Check {
		set := make([]knownvalue.Check, len(ports))
		for i, p := range ports {
			set[i] = knownvalue.Int64Exact(p)
		}
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"host": host, "cidr": cidr, "why": null, "ports": knownvalue.SetExact(set)})
	}
	want := knownvalue.ListExact([]knownvalue.Check{
		rule(null, knownvalue.StringExact("203.0.113.0/24"), 8022),
		rule(knownvalue.StringExact("*.example.org"), null, 8443, 9443),
		rule(knownvalue.StringExact("xn--bcher-kva.example"), null, 80, 443),
	})
	conf := `
resource "sandboxio_network_policy" "n" {
  name   = "n"
  egress = provider::sandboxio::canonical_egress(["BÜCHER.example.", "203.0.113.7/24:8022", "*.example.org:8443,9443", "xn--bcher-kva.example:443"])
}
output "out" { value = sandboxio_network_policy.n.egress }
`
	run(t,
		resource.TestStep{Config: conf, ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("out", want),
			statecheck.ExpectKnownValue("sandboxio_network_policy.n", tfjsonpath.New("canonical").AtMapKey("egress"), want),
		}},
		resource.TestStep{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	)
}

func TestAccNoWordsAreNoRules(t *testing.T) {
	t.Parallel()
	run(t, resource.TestStep{
		Config:            `output "out" { value = [length(provider::sandboxio::canonical_egress([])), provider::sandboxio::egress_allows([], "example.com:443")] }`,
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("out", knownvalue.TupleExact([]knownvalue.Check{knownvalue.Int64Exact(0), knownvalue.Bool(false)}))},
	})
}

func TestAccAllowsDecidesAsInASandbox(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"example.com:443": true, "EXAMPLE.com.:80": true, "example.com:22": false, "evilexample.com:443": false, "a.example.org:443": true, "example.org:443": false,
		"bücher.example:443": true, "xn--bcher-kva.example:443": true, "203.0.113.9:8022": true, "203.0.113.9:443": false, "198.51.100.9:443": false, "169.254.169.254:80": false,
	}
	var list []string
	checks := map[string]knownvalue.Check{}
	for request, allowed := range want {
		list = append(list, fmt.Sprintf("%q", request))
		checks[request] = knownvalue.Bool(allowed)
	}
	run(t, resource.TestStep{
		Config: fmt.Sprintf(`
resource "sandboxio_network_policy" "n" {
  name   = "n"
  egress = [{ host = "example.com" }, { host = "*.example.org" }, { host = "bücher.example" }, { cidr = "203.0.113.0/24", ports = [8022] }]
}
output "out" { value = { for r in [%s] : r => provider::sandboxio::egress_allows(sandboxio_network_policy.n.canonical.egress, r) } }
`, strings.Join(list, ", ")),
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("out", knownvalue.ObjectExact(checks))},
	})
}

func TestAccWhatCannotBeReadIsAnErrorWithTheFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"two malformed rules are told at once", `provider::sandboxio::canonical_egress(["a.example", "*", "10.0.0.0/33"])`, `(?s)rules\[1\].*wildcard.*Fix:.*rules\[2\].*not a CIDR`},
		{"words that deny", `provider::sandboxio::canonical_egress(["deny a.example"])`, `Fix: remove the\s+rule: there\s+are none that deny`},
		{"a range of ports", `provider::sandboxio::canonical_egress(["a.example:80-90"])`, `Fix: ports\s+are\s+numbers between 1 and 65535,\s+divided\s+by\s+commas`},
		{"a null rule", `provider::sandboxio::canonical_egress([null])`, `rules\[0\]: the rule is null`},
		{"a label that stands for no name (M01)", `provider::sandboxio::canonical_egress(["xn--a.example"])`, `stands for no\s+name`},
		{"a request without a port", `provider::sandboxio::egress_allows([], "example.com")`, `has no\s+port`},
		{"a request that is a wildcard", `provider::sandboxio::egress_allows([], "*.example.com:443")`, `wildcard`},
		{"a rule that is none", `provider::sandboxio::egress_allows([{ host = null, cidr = null, ports = null, why = null }], "example.com:443")`, `exactly\s+one of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run(t, resource.TestStep{Config: fmt.Sprintf("output \"out\" { value = %s }\n", c.value), ExpectError: regexp.MustCompile(c.want)})
		})
	}
}

func TestAccUnknownValuesGiveUnknownResults(t *testing.T) {
	t.Parallel()
	run(t, resource.TestStep{Config: `
resource "terraform_data" "u" { input = "a.example.com" }
locals { rules = provider::sandboxio::canonical_egress(["b.example.com", terraform_data.u.output]) }
output "out" { value = [length(local.rules), provider::sandboxio::egress_allows(local.rules, "a.example.com:443")] }
`, ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("out", knownvalue.TupleExact([]knownvalue.Check{knownvalue.Int64Exact(2), knownvalue.Bool(true)}))}})
}
