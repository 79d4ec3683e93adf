package networkpolicy_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
)

// by is what the plan says of one backend.
func by(rules map[string]string) knownvalue.Check {
	m := map[string]knownvalue.Check{}
	for rule, how := range rules {
		m[rule] = knownvalue.StringExact(how)
	}
	return knownvalue.MapExact(m)
}

func in(mode, rules string) string {
	return fmt.Sprintf("resource \"sandboxio_network_policy\" \"n\" {\n  name = \"pypi\"\n  mode = %q\n  egress = [\n%s\n  ]\n}\n", mode, rules)
}

const dockerOnly = "provider \"sandboxio\" {\n  docker {}\n}\n"

func TestAccThePlanShowsHowEachRuleIsEnforcedByEachBackend(t *testing.T) {
	t.Parallel()
	_, memory := acctest.World(t)
	both := fmt.Sprintf("provider \"sandboxio\" {\n  default_backend = \"memory\"\n  docker {}\n  memory {\n    world = %q\n  }\n}\n", acctest.WorldName(t))
	for _, c := range []struct {
		name, conf string
		want       map[string]knownvalue.Check
	}{
		{"a fake says so", memory + in("transparent", `{ host = "a.example.com" }`), map[string]knownvalue.Check{"memory": by(map[string]string{"a.example.com:80,443": "simulated"})}},
		{"mode proxy", dockerOnly + in("proxy", `{ host = "A.example.com", ports = [443] }, { cidr = "2001:db8::1/48" }`),
			map[string]knownvalue.Check{"docker": by(map[string]string{"a.example.com:443": "proxy", "[2001:db8::/48]:80,443": "proxy"})}},
		{"what one backend refuses and another does not", both + in("proxy", `{ host = "a.example.com", ports = [443] }, { host = "a.example.com", ports = [9418] }, { host = "b.example.com" }`),
			map[string]knownvalue.Check{"docker": by(map[string]string{"a.example.com:443,9418": "none", "b.example.com:80,443": "proxy"}), "memory": by(map[string]string{"a.example.com:443,9418": "simulated", "b.example.com:80,443": "simulated"})}},
		{"no rules", dockerOnly + in("proxy", ""), map[string]knownvalue.Check{"docker": by(nil)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, at2 := knownvalue.MapExact(c.want), tfjsonpath.New("mechanisms")
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config:            c.conf,
				ConfigPlanChecks:  resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(at, at2, want)}},
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(at, at2, want)},
			}, noop(c.conf)}})
		})
	}
}

func TestAccARuleThatNobodyCanEnforceIsAnErrorAtTheRule(t *testing.T) {
	t.Parallel()
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:   dockerOnly + in("proxy", "{ host = \"b.example.com\" },\n{ host = \"a.example.com\", ports = [9418] }"),
		PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)No backend can enforce this.*line 19.*docker:.*port 9418 is git.*Attribute: egress\[1\].ports.*Fix:\s+remove\s+the\s+rule\s+for.*only\s+a\s+rule\s+for\s+a\s+CIDR\s+can\s+have\s+port\s+9418,\s+if\s+the\s+policy\s+allows\s+it`),
	}}})
}

func TestAccMechanismsOfAnUnknownRuleAreUnknown(t *testing.T) {
	t.Parallel()
	conf := "resource \"terraform_data\" \"u\" {\n  input = \"a.example.com\"\n}\n" + in("proxy", `{ host = terraform_data.u.output }`)
	one(t,
		resource.TestStep{Config: conf, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue(at, tfjsonpath.New("mechanisms"))}}},
		noop(conf),
	)
}
